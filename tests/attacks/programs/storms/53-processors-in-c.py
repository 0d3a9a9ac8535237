# stopped: processors in C
9 ** 9 ** 9