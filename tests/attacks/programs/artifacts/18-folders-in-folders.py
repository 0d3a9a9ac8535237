# plain_artifacts: folders in folders

for n in range(400): os.mkdir('d'); os.chdir('d')
open('x.csv', 'w').write('x')
