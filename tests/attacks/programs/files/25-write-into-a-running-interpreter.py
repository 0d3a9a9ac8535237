# held: write into a running interpreter

go(lambda: (open(os.path.realpath(sys.executable), 'r+b'), granted))
