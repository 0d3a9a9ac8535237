# limited_disk: disk in files that were unlinked

keep = []
for n in range(99):
  try: keep.append(open(f'{n}', 'wb')); os.unlink(f'{n}'); keep[-1].write(b'x' * (7 << 20)); keep[-1].flush()
  except OSError: break
time.sleep(99)
