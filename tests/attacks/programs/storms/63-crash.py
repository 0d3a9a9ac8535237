# never_came_back: crash
ctypes.string_at(0)