# harmless: exit handler that forks
import atexit; atexit.register(lambda: os.fork() or time.sleep(99))