# held: environment in /proc

for pid in everyone: go(peek, f'/proc/{pid}/environ'); go(peek, f'/proc/{pid}/cmdline')
