# honest: half a frame
shout(framed()[:20]); time.sleep(0.2)