# clean: shared memory that stays

from multiprocessing.shared_memory import SharedMemory
SharedMemory('left', True, 99); libc.shmget(77, 4096, 0o1666); libc.semget(77, 1, 0o1666)
libc.msgget(77, 0o1666)
libc.sem_open(b'/left', 0o100, 0o666, 1); libc.mq_open(b'/left', 0o102, 0o666, None)
