# held: the hypervisor

for cid in (0, 1, 2, 3): go(lambda: (socket.socket(40, 1).connect((cid, 22)), granted))
