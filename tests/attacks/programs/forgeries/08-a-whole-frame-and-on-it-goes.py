# ended: a whole frame, and on it goes
shout(framed())
while True: pass