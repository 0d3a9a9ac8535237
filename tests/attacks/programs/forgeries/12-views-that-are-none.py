# harmless: views that are none

for views in ([5], [None], [{}], 'x', {'a': 1}, [[]] * 9): shout(framed(views=views, sizes=[8, 0]))
