# clean: memory of the interpreter
ctypes.memset(id(5) + 24, 7, 1)