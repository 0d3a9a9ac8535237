# held: another kernel

call('kexec_load', 0, 0, None, 0); call('init_module', b'', 0, b'')
got('delete', libc.delete_module(b'ext4', 0))
