# held: read the disk

for name in ('vda', 'vda1', 'sda', 'sda1', 'nvme0n1', 'mem', 'kmem', 'port', 'kmsg', 'fuse', 'kvm', 'dm-0', 'loop0'):
  go(lambda: (peek('/dev/' + name), granted))
  go(lambda: (os.mknod(name, 0o60666, os.makedev(254, 0)), peek(name)))
