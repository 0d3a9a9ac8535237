# few_files: files at once

print('files', end=' '); n = 0
try:
  while True: os.mknod(f'{n}'); n += 1
finally: print(len(os.listdir('.')))
