# stopped: exit handler
import atexit; atexit.register(time.sleep, 99)