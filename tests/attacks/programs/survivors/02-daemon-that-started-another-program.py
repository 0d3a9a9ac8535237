# harmless: daemon that started another program

subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)', host['mark']], start_new_session=True)
