# held: write by a library

import pandas, sqlite3; each(lambda path: pandas.DataFrame({'a': [1]}).to_csv(path))
each(lambda path: sqlite3.connect(path).execute('create table t (a)'))
