# plain_artifacts: names with lines

open('a\nb.csv', 'w'); open('a\rb.csv', 'w'); open('a\x1b[2Jb.csv', 'w'); open('\t', 'w')
