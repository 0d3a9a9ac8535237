# stopped: folders in folders
while True: os.mkdir('d'); os.chdir('d')