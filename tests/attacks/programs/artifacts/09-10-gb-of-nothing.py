# plain_artifacts: 10 GB of nothing

go(os.truncate, open('x.csv', 'wb').name, 10 << 30); go(os.truncate, 'x.csv', 7 << 20)
