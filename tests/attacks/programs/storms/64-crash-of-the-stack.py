# never_came_back: crash of the stack

sys.setrecursionlimit(10**9)
def f(): f()
f()
