# bounded: names that do not exist

for n in range(10**9):
  try: os.stat(sys.prefix + f'/{n}' + 'x' * 200)
  except OSError: pass
