# held: POSIX queues by their name

name, text = ('/' + host['mark']).encode(), ctypes.create_string_buffer(8192)
queue = libc.mq_open(name, 0o4002)
if queue >= 0: libc.mq_receive(queue, text, 8192, None); print(text.value); libc.mq_send(queue, b'x', 1, 0)
got('unlink', libc.mq_unlink(name))
