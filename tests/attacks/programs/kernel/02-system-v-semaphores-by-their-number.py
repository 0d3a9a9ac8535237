# held: System V semaphores by their number

for number in range(max(0, host['queues'][1] - 2), host['queues'][1] + 3):
  libc.semop(number, struct.pack('Hhh', 0, 5, 0o4000), 1); libc.semtimedop(number, struct.pack('Hhh', 0, 3, 0o4000), 1, None)
  libc.semctl(number, 0, 16, 7); libc.semctl(number, 0, 0)
