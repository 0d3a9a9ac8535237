# plain_artifacts: huge names

open('x' * 255, 'w'); os.makedirs('/'.join(['y' * 250] * 15)); open('/'.join(['y' * 250] * 15) + '/x.csv', 'w')
