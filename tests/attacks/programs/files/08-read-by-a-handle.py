# held: read by a handle

handle = struct.pack('IiQQ', 8, 1, 2, 0)
for place in ('/', '/proc', '/usr/lib', sys.prefix):
  got('handle', libc.open_by_handle_at(os.open(place, 0), handle, 0))
each(lambda path: got('name', libc.name_to_handle_at(-100, path.encode(), handle, mmap.mmap(-1, 8)[:], 0)))
