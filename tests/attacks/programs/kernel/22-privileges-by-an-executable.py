# held: privileges by an executable

print([line for line in open('/proc/self/status') if line.split() == ['NoNewPrivs:', '0'] and granted])
