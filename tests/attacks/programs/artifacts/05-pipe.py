# plain_artifacts: pipe
os.mkfifo('x.csv'); os.mkfifo('y.png')