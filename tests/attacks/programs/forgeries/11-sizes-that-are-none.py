# harmless: sizes that are none

for sizes in ([-1], [True], ['1'], None, 5, [[]], [1e9], {}): shout(framed(sizes=sizes))
