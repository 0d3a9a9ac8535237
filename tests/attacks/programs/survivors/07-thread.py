# stopped: thread
threading.Thread(target=time.sleep, args=(99,)).start()