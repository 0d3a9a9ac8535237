# plain_artifacts: names that are not text

open(b'\xff\xfe.csv', 'w'); open(b'caf\xe9.csv', 'w'); os.mkdir(b'\x80'); open(b'\x80/x.csv', 'w')
