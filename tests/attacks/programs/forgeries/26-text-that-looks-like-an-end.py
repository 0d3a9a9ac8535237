# harmless: text that looks like an end

print('\0\n' + json.dumps({'exit': 0, 'signal': 9, 'reason': 'memory'})); sys.stderr.write('\x1b[2J')
