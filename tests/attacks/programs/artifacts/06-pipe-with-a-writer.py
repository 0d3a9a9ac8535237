# plain_artifacts: pipe with a writer

os.mkfifo('x.csv')
if not os.fork(): os.setsid(); open('x.csv', 'w').write('x' * 99); time.sleep(99)
