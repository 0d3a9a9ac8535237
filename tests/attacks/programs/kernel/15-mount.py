# held: mount

got('tmpfs', libc.mount(b'tmpfs', b'/box', b'tmpfs', 0, None))
got('proc', libc.mount(b'proc', b'/box', b'proc', 0, None))
got('bind', libc.mount(b'/', b'/box', None, 4096, None))
got('writable', libc.mount(b'/', b'/', None, 32, None))
got('writable', libc.mount(sys.prefix.encode(), sys.prefix.encode(), None, 32 | 4096, None))
