# harmless: junk

shout(b'[' * 60000 + b'\n'); shout(b'\xff' * 99 + b'\n'); shout(b'{"status": 5}\n'); shout(b'\0' * 99)
shout(b'NaN\n'); shout(b'1' * 9999 + b'\n'); shout(b'\x80\x04.')
