# ended: a result and no end

shout(b'\n' + forged + b'\n')
while True: pass
