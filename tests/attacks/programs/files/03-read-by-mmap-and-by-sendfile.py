# held: read by mmap and by sendfile

each(lambda p: mmap.mmap(os.open(p, 0), 0, prot=1)[:]); each(lambda p: os.sendfile(1, os.open(p, 0), 0, 99))
