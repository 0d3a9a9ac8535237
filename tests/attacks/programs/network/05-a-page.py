# held: a page

import urllib.request, pandas
for port in host['ports']:
  go(urllib.request.urlopen, f'http://127.0.0.1:{port}/', None, 0.3)
  go(pandas.read_csv, f'http://127.0.0.1:{port}/x.csv')
