# held: read
each(peek); print(sys.prefix)