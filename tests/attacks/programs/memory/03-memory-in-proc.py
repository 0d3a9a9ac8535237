# held: memory in /proc

for pid in everyone:
  def read():
    with open(f'/proc/{pid}/mem', 'rb', 0) as file: file.seek(host['address']); return file.read(64)
  go(read)
