# held: capabilities

full = struct.pack('6I', *[0xFFFFFFFF] * 6); call('capset', struct.pack('Ii', 0x20080522, 0), full)
got('ambient', libc.prctl(47, 2, 21, 0, 0))
for line in open('/proc/self/status'):
  if line.startswith(('CapPrm', 'CapEff', 'CapAmb')) and int(line.split()[1], 16): print(line, granted)
