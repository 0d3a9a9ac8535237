# plain_artifacts: files without a right to read

open('x.csv', 'w').write('x'); os.chmod('x.csv', 0); os.mkdir('d'); open('d/y.csv', 'w'); os.chmod('d', 0)
