# clean: modules beside the program

for place in ('/box', '/tmp', '.', '/dev/shm'):
  for name in ('json', 'csv', 'sitecustomize', 'usercustomize', 'pandas'):
    try: open(f'{place}/{name}.py', 'w').write('print("POISON")')
    except OSError: pass
