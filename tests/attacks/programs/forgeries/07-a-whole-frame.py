# ended: a whole frame
shout(framed()); time.sleep(60)