# held: list what is not for it

each(lambda path: os.listdir(os.path.dirname(path)) and granted)
each(lambda path: [n for n in os.listdir(os.path.dirname(os.path.dirname(path))) if host['mark'] in n] and granted)
for place in ('/sys', '/boot', '/mnt', '/srv', '/var/lib'): go(lambda: os.listdir(place) and granted)
