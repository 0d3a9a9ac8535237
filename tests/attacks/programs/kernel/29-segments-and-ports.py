# held: segments and ports

call('modify_ldt', 1, b'\0' * 16, 16); call('iopl', 3)
got('ioperm', libc.ioperm(0x378, 3, 1)) if hasattr(libc, 'ioperm') else None
