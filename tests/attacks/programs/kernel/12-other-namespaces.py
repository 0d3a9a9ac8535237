# held: other namespaces

for pid in everyone:
  for path in glob.glob(f'/proc/{pid}/ns/*'):
    try: got('setns', libc.setns(os.open(path, 0), 0))
    except OSError: pass
