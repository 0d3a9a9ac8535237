# plain_artifacts: names that lead out

os.makedirs('a/b'); go(lambda: open('a/..\\..\\x.csv', 'w')); go(lambda: open('..%2fx.csv', 'w'))
go(lambda: open('a/...', 'w')); go(lambda: open(' /x.csv', 'w'))
open('~', 'w'); open('C:x.csv', 'w'); open('a/b/\u202ecsv.exe', 'w')
