"""Ordinary programs print the same inside and outside of the sandbox.

Each row is a program that a person might write. It is run twice, as a script by this Python and in the box, beside the
same input files, and what it prints must be the same. So programs print only what does not depend on the place.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from code_chains.executors import Limits, SandboxExecutor

INPUTS = {
    "sales.csv": "region,day,amount\nnorth,2024-01-05,10\nsouth,2024-01-06,32\nnorth,2024-02-07,5.5\nwest,2024-02-08,\n",
    "data.json": '{"name": "caf\u00e9", "list": [1, 2.5, null, true], "deep": {"a": {"b": "c"}}}',
    "notes.txt": "first line\nsecond l\u00efne \u2713\n\nlast line without end",
    "sub/more.tsv": "a\tb\n1\t2\n",
    "set.ini": "[one]\nkey = value\nnumber = 5\n",
}
"""Input files of every program."""

DATA = {
    "csv": """
import csv
for row in csv.DictReader(open('sales.csv')): print(row)
""",
    "csv written": """
import csv
with open('o.csv', 'w', newline='') as f: csv.writer(f).writerows([[1, 'a,b'], [2, 'c']])
print(open('o.csv').read())
""",
    "json": """
import json
print(json.load(open('data.json'))); print(json.dumps({'b': [1, None], 'a': 'é'}, indent=1, sort_keys=True))
""",
    "text file": "print(open('notes.txt').readlines(), len(open('notes.txt', 'rb').read()))",
    "file in a folder": "print(open('sub/more.tsv').read().split())",
    "append and seek": """
f = open('x', 'w+'); f.write('hello'); f.seek(1); print(f.read(2), f.tell()); f.close(); open('x', 'a').write('!')
print(open('x').read())
""",
    "sqlite in memory": """
import sqlite3
c = sqlite3.connect(':memory:'); c.execute('create table t (a, b)')
c.executemany('insert into t values (?, ?)', [(n, n * n) for n in range(9)])
print(c.execute('select sum(b), avg(a) from t where a > 2').fetchall())
""",
    "sqlite in a file": """
import sqlite3
with sqlite3.connect('x.db') as c: c.execute('create table t (a)'); c.execute('insert into t values (5)')
c.close(); c = sqlite3.connect('x.db'); print(c.execute('select * from t').fetchall()); c.close()
""",
    "numpy": """
import numpy as np
a = np.arange(12).reshape(3, 4)
print(a, a.T @ a, a.mean(axis=0), np.linalg.det(np.eye(3) * 2), np.random.default_rng(5).integers(0, 9, 5))
""",
    "numpy with its old seed": """
import numpy as np
np.random.seed(1); print(np.random.rand(3), np.random.permutation(5))
""",
    "numpy linear algebra": """
import numpy as np
x = np.linalg.solve(np.array([[2.0, 1], [1, 3]]), [3, 5])
print(x.round(6), np.linalg.eigvalsh([[2, 0], [0, 3]]), np.fft.fft([1, 0, 0, 0]))
""",
    "numpy big product": """
import numpy as np
a = np.ones((500, 500)); print((a @ a).sum())
""",
    "numpy file": """
import numpy as np
np.save('a.npy', np.eye(2)); np.savetxt('a.txt', np.eye(2)); print(np.load('a.npy'), np.loadtxt('a.txt').sum())
""",
    "numpy memory map": """
import numpy as np
m = np.memmap('m.dat', dtype='int32', mode='w+', shape=(4,)); m[:] = range(4); m.flush()
print(np.fromfile('m.dat', 'int32'))
""",
    "pandas groupby": """
import pandas as pd
d = pd.read_csv('sales.csv'); print(d.groupby('region').amount.agg(['sum', 'count']))
""",
    "pandas merge": """
import pandas as pd
a = pd.DataFrame({'k': [1, 2, 3], 'x': list('abc')}); b = pd.DataFrame({'k': [2, 3, 4], 'y': list('def')})
print(a.merge(b, how='outer', on='k', indicator=True))
""",
    "pandas dates": """
import pandas as pd
d = pd.read_csv('sales.csv', parse_dates=['day']).set_index('day')
print(d.amount.resample('MS').sum(), d.index.day_name().tolist(),
    pd.date_range('2024-02-27', periods=4, tz='Europe/Paris'))
""",
    "pandas pivot": """
import pandas as pd
d = pd.read_csv('sales.csv'); d['month'] = d.day.str[:7]
print(d.pivot_table(index='region', columns='month', values='amount', aggfunc='sum', fill_value=0))
""",
    "pandas to csv and json": """
import pandas as pd
d = pd.read_csv('sales.csv'); d.to_csv('o.csv', index=False); d.to_json('o.json')
print(open('o.csv').read(), pd.read_json('o.json').shape, d.to_dict('records')[0])
""",
    "pandas describe": """
import pandas as pd
d = pd.read_csv('sales.csv'); print(d.describe(), d.isna().sum(), d.dtypes); d.info()
""",
    "pandas to sqlite": """
import pandas as pd, sqlite3
c = sqlite3.connect(':memory:'); pd.read_csv('sales.csv').to_sql('s', c)
print(pd.read_sql('select region, sum(amount) t from s group by 1', c)); c.close()
""",
    "pandas pickle": """
import pandas as pd
pd.DataFrame({'a': [1]}).to_pickle('x.pkl'); print(pd.read_pickle('x.pkl'))
""",
    "matplotlib": """
import matplotlib.pyplot as plt
fig, ax = plt.subplots(); ax.plot([1, 2], [3, 4]); ax.set_title('Über ✓'); fig.savefig('x.png')
print(open('x.png', 'rb').read(8), plt.get_backend().lower())
""",
    "matplotlib show": """
import matplotlib.pyplot as plt
plt.hist([1, 2, 2, 3]); plt.show(); plt.savefig('x.svg'); print(open('x.svg').read(5)); plt.close('all')
""",
    "pickle of an own class": """
import pickle
class P:
    def __init__(self, x): self.x = x
print(pickle.loads(pickle.dumps(P(5))).x, P.__module__, P(1).__class__)
""",
    "shelve": """
import shelve
with shelve.open('s') as s: s['a'] = [1]
with shelve.open('s') as s: print(dict(s))
""",
    "zipfile": """
import zipfile
with zipfile.ZipFile('z.zip', 'w', zipfile.ZIP_DEFLATED) as z: z.write('notes.txt'); z.writestr('a/b', 'x')
print(zipfile.ZipFile('z.zip').namelist(), zipfile.ZipFile('z.zip').read('a/b'))
""",
    "tarfile": """
import tarfile
with tarfile.open('t.tar.gz', 'w:gz') as t: t.add('sub')
with tarfile.open('t.tar.gz') as t: print(t.getnames()); t.extractall('out')
print(open('out/sub/more.tsv').read())
""",
    "compression": """
import bz2, gzip, lzma, zlib
d = b'x' * 9999
for m in (bz2, gzip, lzma, zlib): print(m.decompress(m.compress(d)) == d)
gzip.open('x.gz', 'wt').write('hello'); print(gzip.open('x.gz', 'rt').read())
""",
    "xml": """
import xml.etree.ElementTree as E, xml.dom.minidom as m
t = E.fromstring('<a x="1"><b>t</b><b/></a>'); print([e.tag for e in t.iter()], t.find('b').text, E.tostring(t))
print(m.parseString('<a/>').toxml())
""",
    "html": """
import html, html.parser
class P(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs): print(tag, attrs)
P().feed('<p class="x">hi<br>'); print(html.escape('<&>'), html.unescape('&eacute;'))
""",
    "email": """
from email.message import EmailMessage
m = EmailMessage(); m['Subject'] = 'Grüße'; m['To'] = 'a@b.c'; m.set_content('hello')
print(m['Subject'], m.get_content(), m.as_bytes()[:30])
""",
    "configparser": """
import configparser
c = configparser.ConfigParser(); c.read('set.ini'); print(c.sections(), c.getint('one', 'number'))
""",
    "tomllib": r"""
import tomllib
print(tomllib.loads('a = 1\n[b]\nc = 2024-01-01'))
""",
}  # fmt: skip

LANGUAGE = {
    "dataclasses": """
from dataclasses import dataclass, field, asdict, replace
@dataclass(order=True, frozen=True)
class P:
    x: int
    y: list = field(default_factory=list, compare=False)
print(P(1), asdict(P(2)), P(1) < P(2), replace(P(1), x=5), hash(P(1)) == hash(P(1)))
""",
    "enum": """
import enum
class C(enum.Enum):
    RED = 1
    BLUE = enum.auto()
class F(enum.Flag):
    A = 1
    B = 2
print(C.RED, list(C), C['BLUE'].value, F.A | F.B, repr(C(1)))
""",
    "typing": """
import typing as t
class N(t.NamedTuple):
    a: int = 1
class D(t.TypedDict):
    x: int
class G(t.Generic[t.TypeVar('T')]): pass
print(N(), D(x=1), t.get_type_hints(N), t.Optional[int], G[int])
""",
    "annotations of the future": """
from __future__ import annotations
import typing
class A:
    def f(self, other: A) -> list[A]: ...
print(typing.get_type_hints(A.f)['return'].__args__[0] is A)
""",
    "abstract classes": """
import abc
class A(abc.ABC):
    @abc.abstractmethod
    def f(self): ...
try: A()
except TypeError as e: print(type(e))
print(type('B', (A,), {'f': lambda s: 1})().f())
""",
    "context managers": """
import contextlib, io
@contextlib.contextmanager
def c():
    print('in'); yield 5; print('out')
with c() as x, contextlib.suppress(KeyError), contextlib.redirect_stdout(io.StringIO()) as f: print('hidden'); {}[1]
print(x, f.getvalue())
""",
    "itertools and functools": """
import itertools as i, functools as f, operator
print(list(i.permutations('ab')), list(i.accumulate([1, 2, 3])), [(k, list(g)) for k, g in i.groupby('aab')],
    f.reduce(operator.mul, range(1, 6)), list(i.batched('abc', 2)) if hasattr(i, 'batched') else '')
@f.lru_cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(90), fib.cache_info())
""",
    "single dispatch": """
import functools
@functools.singledispatch
def f(x): return 'any'
@f.register
def _(x: int): return 'int'
print(f(1), f('a'))
""",
    "decimals and fractions": """
from decimal import Decimal, getcontext
from fractions import Fraction
getcontext().prec = 50; print(Decimal(2).sqrt(), Fraction(1, 3) + Fraction('0.5'), Decimal('0.1') + Decimal('0.2'))
""",
    "statistics": """
import statistics as s
print(s.mean([1, 2, 4]), s.median([5, 1]), s.stdev([1, 2, 3]), s.mode('aab'), s.quantiles([1, 2, 3, 4]),
    s.linear_regression([1, 2], [2, 4]))
""",
    "random with a seed": """
import random
random.seed(42); print(random.random(), random.sample(range(99), 5), random.choice('abc'), random.gauss(0, 1))
r = random.Random('x'); print(r.getrandbits(64))
""",
    "complex numbers and math": """
import cmath, math
print(cmath.sqrt(-1), (1 + 2j) ** 3, math.gcd(12, 18), math.comb(50, 25),
    math.isclose(math.pi, 3.14159265358979), math.inf, math.nan, math.factorial(20))
""",
    "big numbers": """
print(len(str(2 ** 9999)), pow(3, 10**6, 10**9 + 7), -7 // 2, divmod(-7, 2), 0.1 + 0.2, 1e308 * 10, round(2.5),
    int('z', 36))
""",
    "strings": """
print('%5.2f|%s' % (3.14159, 'x'), '{:>8,}'.format(1234567), f'{"a":^5}|{5:08b}|{1e9:e}|{.25:.1%}',
    'a-b_c'.title(), 'x'.join('abc'), 'aXb'.swapcase(), 'ß'.upper(), 'abc'[::-1])
""",
    "unicode": r"""
name = 'Jürgen 😀'
print(f'{name!r} {name} {len(name)} {name.encode()}', '日本語', '\N{GREEK SMALL LETTER ALPHA}', ascii(name))
""",
    "unicodedata": """
import unicodedata as u
print(u.name('é'), u.normalize('NFD', 'é').encode(), u.category('A'), u.east_asian_width('漢'))
""",
    "regular expressions": r"""
import re
print(re.findall(r'(\w+)@(\w+)', 'a@b c@d'), re.sub(r'(?P<x>\d+)', lambda m: str(int(m['x']) * 2), 'a1b22'),
    re.split(r'[;,]\s*', 'a; b,c'), re.fullmatch('a(?=b)', 'ab'))
""",
    "text": """
import string, textwrap, difflib, pprint
print(textwrap.fill('word ' * 30, 40))
print(string.Template('$a').substitute(a=1), *difflib.unified_diff(['a'], ['b'], lineterm=''))
pprint.pprint({'a': list(range(30)), 'b': {'c': 'd' * 60}}, width=60)
""",
    "dates": """
import datetime as d, calendar
x = d.datetime(2024, 2, 28, 23, 0, tzinfo=d.timezone.utc)
print(x + d.timedelta(days=2), x.isoformat(), x.strftime('%A %d %B %Y %j'),
    d.date.fromisoformat('2024-12-30').isocalendar())
print(calendar.month(2024, 2), d.datetime.strptime('5/3/21', '%d/%m/%y'))
""",
    "time zones": """
from datetime import datetime
from zoneinfo import ZoneInfo
x = datetime(2024, 7, 1, 12, tzinfo=ZoneInfo('America/New_York'))
print(x.astimezone(ZoneInfo('Asia/Tokyo')), x.utcoffset(), x.tzname())
""",
    "time": """
import time
a = time.monotonic(); time.sleep(0.05)
print(time.monotonic() - a >= 0.05, time.gmtime(0)[:6], time.strftime('%Y', time.gmtime(86400 * 365)),
    time.time() > 1.6e9, time.perf_counter_ns() > 0)
""",
    "locale": """
import locale
print(locale.setlocale(locale.LC_ALL, ''), locale.getpreferredencoding(),
    locale.format_string('%d', 12345, grouping=True), sorted(['b', 'A', 'é']))
""",
    "hashes": """
import hashlib, hmac, zlib, binascii
print(hashlib.sha256(b'x').hexdigest(), hashlib.md5(b'x').hexdigest(),
    hashlib.blake2b(b'x', digest_size=8).hexdigest(), hmac.new(b'k', b'm', 'sha1').hexdigest(),
    zlib.crc32(b'x'), hashlib.scrypt(b'p', salt=b's', n=16, r=8, p=1).hex()[:8], binascii.hexlify(b'ab'))
""",
    "secrets and ids": """
import secrets, uuid
print(len(secrets.token_hex(8)), secrets.token_bytes(4) != secrets.token_bytes(4),
    uuid.uuid5(uuid.NAMESPACE_DNS, 'a.b'), uuid.uuid4().version, len(str(uuid.uuid1())),
    secrets.compare_digest('a', 'a'))
""",
    "urls": """
from urllib.parse import urlparse, quote, urlencode, parse_qs, urljoin
print(urlparse('http://u@h:80/p?q=1#f'), quote('a b/é'), urlencode({'a': [1, 2]}, doseq=True),
    parse_qs('a=1&a=2'), urljoin('http://a/b/c', '../d'))
""",
    "bytes": r"""
import base64, struct, array
print(base64.b64encode(b'\xff\x00'), base64.b85decode(base64.b85encode(b'x')), struct.pack('<IhQ', 1, -2, 3),
    struct.unpack('>f', b'@I\x0f\xdb'), array.array('d', [1, 2]).tobytes().hex(), int.from_bytes(b'\1\0'),
    memoryview(b'abc')[1:].tolist())
""",
    "sorted structures": """
import bisect, heapq, collections as c
h = [5, 1, 4]; heapq.heapify(h)
print(heapq.heappop(h), heapq.nlargest(2, [1, 9, 5]), bisect.bisect([1, 2, 2, 3], 2),
    c.Counter('aab').most_common(1), c.deque([1, 2, 3], 2), c.defaultdict(list), c.OrderedDict(a=1),
    c.ChainMap({'a': 1}, {'b': 2})['b'], c.namedtuple('P', 'x y')(1, 2))
""",
    "copies": """
import copy, weakref, gc
a = [[1], {'b': {2}}]; b = copy.deepcopy(a); b[0].append(2); print(a, b, copy.copy(a)[0] is a[0])
class C: pass
o = C(); r = weakref.ref(o); del o; gc.collect(); print(r())
""",
    "generators": """
def g():
    x = yield 1
    print('got', x)
    yield from range(2)
    return 5
i = g(); print(next(i), i.send('a'), list(i))
print(sum(n * n for n in range(10)), [*map(str, range(3))], {k: v for k, v in zip('ab', [1, 2])})
""",
    "recursion": """
import sys
sys.setrecursionlimit(5000)
def f(n): return 0 if n == 0 else 1 + f(n - 1)
print(f(4000))
def g(): g()
try: g()
except RecursionError as e: print(e)
""",
    "classes": """
class A:
    def __init_subclass__(cls, **k): print('sub', cls.__name__, k)
    def __repr__(self): return f'<{type(self).__qualname__}>'
class B(A, x=1):
    __slots__ = ('a',)
    @property
    def p(self): return 5
    @classmethod
    def c(cls): return cls
    def __getattr__(self, n): return n
print(B(), B().p, B.c(), B().zzz, B.__mro__, B.__module__)
""",
    "metaclass": """
class M(type):
    def __call__(cls, *a): print('call', a); return super().__call__(*a)
class A(metaclass=M):
    def __init__(self, *a): pass
print(isinstance(A(1), A), type(A))
""",
    "pattern matching": """
def f(x):
    match x:
        case {'a': int(n)}: return n
        case [1, *rest]: return rest
        case str() as s if s: return s
        case _: return None
print(f({'a': 5}), f([1, 2, 3]), f('z'), f(0))
""",
    "exceptions": """
import traceback
class E(ValueError): pass
try:
    try: 1 / 0
    except ZeroDivisionError as e: raise E('bad') from e
except E as e: print(repr(e), repr(e.__cause__), traceback.format_exception_only(e))
finally: print('end')
try: raise ExceptionGroup('g', [ValueError(1), KeyError(2)])
except* ValueError as g: print(g.exceptions)
except* KeyError as g: print(g.exceptions)
""",
    "own source": """
import inspect
def f(a, b=1, *c, d: int = 2, **e):
    '''Doc.'''
    return a
print(inspect.signature(f), inspect.getdoc(f), inspect.getsource(f), f.__code__.co_varnames)
""",
    "syntax trees": """
import ast, dis, io
t = ast.parse('x = 1 + 2'); print(ast.dump(t), ast.unparse(t), eval('3 * 3'), ast.literal_eval('[1, (2,)]'))
exec('y = 5'); print(y, dis.opname[100] != '')
""",
    "names of the module": """
x = 1
print(__name__, 'x' in globals(), __builtins__ is not None, __doc__, sorted(n for n in dir() if not n.startswith('_')))
import sys, __main__; print(__main__.x, sys.modules['__main__'].x)
""",
    "docstring of the program": """
'''What it does.'''
print(__doc__)
""",
    "main guard": """
def main():
    print('main')
if __name__ == '__main__':
    main()
""",
    "own path": """
import os, pathlib
print((pathlib.Path(__file__).resolve().parent / 'sales.csv').exists(),
    os.path.dirname(os.path.abspath(__file__)) == os.getcwd())
""",
    "scopes": """
x = 1
def f():
    global x
    x += 1
    def g():
        nonlocal y
        y += 1
        return y
    y = 5
    return g(), x
print(f(), [lambda: x for x in range(3)][0](), x); del x; print('x' in globals())
""",
    "warnings": """
import warnings
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter('always'); warnings.warn('careful', DeprecationWarning)
print(w[0].message, w[0].category, w[0].lineno)
""",
    "star imports": """
from math import *
from os.path import join as j
print(sqrt(16), j('a', 'b'))
""",
}  # fmt: skip

SYSTEM = {
    "asyncio gather": """
import asyncio
async def f(n):
    await asyncio.sleep(0.01 * (3 - n)); print('done', n); return n
async def main(): print(await asyncio.gather(*map(f, range(3))))
asyncio.run(main())
""",
    "asyncio queue and task group": """
import asyncio
async def main():
    q = asyncio.Queue(2)
    async def put():
        for n in range(5): await q.put(n)
        await q.put(None)
    async with asyncio.TaskGroup() as g:
        g.create_task(put())
        while (x := await q.get()) is not None: print(x)
    try:
        async with asyncio.timeout(0.01): await asyncio.sleep(5)
    except TimeoutError: print('late')
asyncio.run(main())
""",
    "asyncio subprocess": r"""
import asyncio, sys
async def main():
    p = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(input()[::-1])', stdin=-1, stdout=-1)
    print(await p.communicate(b'abc\n'), p.returncode)
asyncio.run(main())
""",
    "asyncio threads": """
import asyncio, time
async def main():
    print(await asyncio.gather(asyncio.to_thread(time.sleep, 0.01), asyncio.to_thread(len, 'abc')))
asyncio.run(main())
""",
    "asyncio generator": """
import asyncio
async def g():
    for n in range(3): yield n; await asyncio.sleep(0)
async def main(): print([n async for n in g()])
loop = asyncio.new_event_loop(); loop.run_until_complete(main()); loop.close()
""",
    "asyncio unix server": r"""
import asyncio
async def serve(r, w): w.write((await r.readline()).upper()); w.close()
async def main():
    async with await asyncio.start_unix_server(serve, 's.sock'):
        r, w = await asyncio.open_unix_connection('s.sock'); w.write(b'abc\n'); print(await r.read()); w.close()
asyncio.run(main())
""",
    "threads": """
import threading, queue
q, lock, n = queue.Queue(), threading.Lock(), 0
def work():
    global n
    for _ in range(1000):
        with lock: n += 1
    q.put(threading.current_thread().name)
ts = [threading.Thread(target=work, name=f't{i}') for i in range(8)]; [t.start() for t in ts]
[t.join() for t in ts]
print(n, sorted(q.get() for _ in ts), threading.active_count(), threading.main_thread() is threading.current_thread())
""",
    "threads that outlive the program": """
import threading, time
def late(): time.sleep(0.1); print('late')
threading.Thread(target=late).start(); threading.Timer(0.2, print, ['timer']).start(); print('end')
""",
    "thread pool": """
from concurrent.futures import ThreadPoolExecutor, as_completed
with ThreadPoolExecutor(4) as p:
    print(list(p.map(lambda n: n * n, range(9))),
        sorted(f.result() for f in as_completed([p.submit(pow, 2, n) for n in range(4)])))
""",
    "exit handlers": """
import atexit
atexit.register(print, 'second'); atexit.register(print, 'first'); print('end')
""",
    "process pool": """
from concurrent.futures import ProcessPoolExecutor
def f(n): return n * n
if __name__ == '__main__':
    with ProcessPoolExecutor(2) as p: print(list(p.map(f, range(9))))
""",
    "multiprocessing pool": """
from multiprocessing import Pool
def f(n): return n + 1
if __name__ == '__main__':
    with Pool(2) as p:
        print(p.map(f, range(5)), p.apply_async(f, (9,)).get(), sorted(p.imap_unordered(f, range(3))))
""",
    "multiprocessing queue": """
from multiprocessing import Process, Queue, Pipe, Value, Lock, Event
def f(q, v, l, e):
    with l: v.value += 5
    q.put([1]); e.set()
if __name__ == '__main__':
    q, v, l, e = Queue(), Value('i', 1), Lock(), Event(); p = Process(target=f, args=(q, v, l, e)); p.start()
    print(q.get(), e.wait(5)); p.join(); print(v.value, p.exitcode)
""",
    "multiprocessing shared memory": """
from multiprocessing import Process, shared_memory
def f(name):
    m = shared_memory.SharedMemory(name); m.buf[0] = 7; m.close()
if __name__ == '__main__':
    m = shared_memory.SharedMemory(create=True, size=9); p = Process(target=f, args=(m.name,)); p.start(); p.join()
    print(m.buf[0]); m.close(); m.unlink()
""",
    "multiprocessing manager": """
from multiprocessing import Manager, Process
def f(d): d['a'] = 5
if __name__ == '__main__':
    with Manager() as m:
        d = m.dict(); p = Process(target=f, args=(d,)); p.start(); p.join(); print(dict(d), m.list([1])[:])
""",
    "multiprocessing without fork": """
import multiprocessing as m, math
if __name__ == '__main__':
    with m.get_context('spawn').Pool(1) as p: print(p.map(math.sqrt, [4, 9]))
""",
    "multiprocessing of an own function without fork": """
import multiprocessing as m
def f(n): return n * 3
if __name__ == '__main__':
    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [4, 9]))
""",
    "subprocess of Python": """
import subprocess, sys
r = subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv[1:], sys.stdin.read()); sys.exit(3)', 'a b'],
    input='in', text=True, capture_output=True)
print(r.stdout, r.returncode)
""",
    "subprocess that imports libraries": """
import subprocess, sys
code = 'import numpy, pandas; print(numpy.arange(3), pandas.Series([1]).sum())'
print(subprocess.check_output([sys.executable, '-c', code], text=True))
""",
    "subprocess of a script": """
import subprocess, sys
open('s.py', 'w').write('print(open("notes.txt").readline(), __name__)')
print(subprocess.check_output([sys.executable, 's.py'], text=True))
""",
    "subprocess of a module": """
import subprocess, sys
print(subprocess.run([sys.executable, '-m', 'json.tool', 'data.json'], capture_output=True, text=True).stdout[:20])
""",
    "fork and wait": """
import os
r, w = os.pipe()
if (p := os.fork()) == 0: os.write(w, b'child'); os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]), os.read(r, 9))
""",
    "alarm": """
import signal, time
def h(n, f): print('alarm', n == signal.SIGALRM)
signal.signal(signal.SIGALRM, h); signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.3); print('end')
""",
    "signal to oneself": """
import os, signal
signal.signal(signal.SIGUSR1, lambda *a: print('usr1')); os.kill(os.getpid(), signal.SIGUSR1)
try: os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(1)
except KeyboardInterrupt: print('interrupted')
""",
    "temporary files": """
import tempfile, os
with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile('w+', dir=d, suffix='.txt') as f:
    f.write('x'); f.flush(); print(open(f.name).read(), os.listdir(d) != [])
with tempfile.TemporaryFile() as f: f.write(b'x'); f.seek(0); print(f.read())
print(os.path.exists(d), tempfile.SpooledTemporaryFile(9).write(b'ab'))
""",
    "folders": """
import os, shutil
os.makedirs('a/b/c', exist_ok=True); open('a/b/x.txt', 'w').write('x'); shutil.copytree('a', 'z')
shutil.move('z', 'y'); os.rename('y/b/x.txt', 'y/q'); shutil.rmtree('a')
print([(d, sorted(n), sorted(f)) for d, n, f in sorted(os.walk('y'))], os.path.exists('a'),
    shutil.disk_usage('.').total > 0)
""",
    "pathlib": """
from pathlib import Path
p = Path('d') / 'e'; p.mkdir(parents=True); (p / 'f.txt').write_text('ü')
print([str(x) for x in sorted(Path().rglob('*.t*'))], (p / 'f.txt').stat().st_size,
    p.joinpath('..', 'e').resolve().name, Path('a.tar.gz').suffixes, (p / 'f.txt').read_text(),
    Path('sales.csv').exists())
""",
    "glob": """
import glob, fnmatch
print(sorted(glob.glob('**/*.*', recursive=True)), fnmatch.filter(['a.py', 'b'], '*.py'))
""",
    "listing": """
import os
print(sorted(os.listdir()), sorted(e.name for e in os.scandir() if e.is_dir()), os.path.getsize('notes.txt'),
    os.access('notes.txt', os.R_OK), os.path.isfile('nothing'))
""",
    "links and modes": """
import os, stat
open('x', 'w').close(); os.chmod('x', 0o640); os.symlink('x', 'l'); os.link('x', 'h')
print(stat.filemode(os.stat('x').st_mode), os.readlink('l'), os.stat('h').st_nlink, os.path.islink('l'))
os.utime('x', (5, 5)); print(os.stat('x').st_mtime); os.mkfifo('p'); os.unlink('p')
""",
    "missing file": """
try: open('nothing.csv')
except FileNotFoundError as e: print(e, e.errno)
try: int('x')
except ValueError as e: print(e)
""",
    "memory map": """
import mmap
with open('m', 'w+b') as f:
    f.write(b'hello'); f.flush(); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'J'; print(m[:], m.find(b'l')); m.close()
print(open('m').read()); m = mmap.mmap(-1, 9); m.write(b'abc'); m.seek(0); print(m.read(3))
""",
    "streams": r"""
import io, sys
b = io.BytesIO(b'a\nb')
print(b.readlines(), io.StringIO('x').read(), io.TextIOWrapper(io.BytesIO(b'\xe9'), 'latin-1').read())
sys.stdout.write('raw\n'); sys.stdout.flush(); sys.stdout.buffer.write(b'bytes\n'); sys.stdout.buffer.flush()
print('a', 'b', sep='-', end='!\n', file=sys.stdout, flush=True)
""",
    "standard error": r"""
import sys
print('to err', file=sys.stderr); print('to out'); sys.stderr.write('x\n')
""",
    "replaced output": """
import sys, io
old = sys.stdout; sys.stdout = io.StringIO(); print('hidden'); got = sys.stdout.getvalue(); sys.stdout = old
print(got.upper())
""",
    "input at its end": """
import sys
print(repr(sys.stdin.read()), sys.stdin.isatty(), sys.stdout.isatty())
try: input('? ')
except EOFError: print('no input')
""",
    "arguments": """
import sys
print(len(sys.argv), type(sys.argv[0]), sys.argv[1:])
""",
    "argparse": """
import argparse
p = argparse.ArgumentParser(); p.add_argument('--n', type=int, default=3); p.add_argument('rest', nargs='*')
print(p.parse_args().n, p.parse_args().rest, p.parse_args(['--n', '5', 'x']).rest)
""",
    "exit": """
import sys
print('before'); sys.exit()
print('after')
""",
    "exit in a function": """
def f(): raise SystemExit(0)
print('before'); f()
""",
    "exit by name": "print('before'); exit()",
    "quit by name": "print('before'); quit()",
    "logging": """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format='%(levelname)s %(name)s %(message)s')
logging.getLogger('x').info('hi %d', 5); logging.debug('no')
try: 1 / 0
except ZeroDivisionError: logging.error('failed')
""",
    "environment": """
import os
os.environ['X'] = '1'
print(os.environ['X'], os.getenv('NOTHING', 'none'), os.path.expandvars('$X'),
    os.environ.get('HOME') is not None, os.path.expanduser('~') != '~')
""",
    "working directory": """
import os
os.mkdir('d'); old = os.getcwd(); os.chdir('d'); open('x', 'w').close()
print(os.listdir('.'), os.path.basename(os.getcwd())); os.chdir(old); print(os.listdir('d'), os.path.isabs(old))
""",
    "user": """
import getpass, os, pwd
print(bool(getpass.getuser()), os.getuid() >= 0, len(os.getgroups()) >= 0, bool(os.path.expanduser('~')))
""",
    "platform": """
import platform, sys, os
print(platform.system(), platform.python_implementation(), platform.python_version(), sys.version_info[:2],
    sys.byteorder, sys.maxsize, os.sep, os.name, platform.machine(), sys.platform, sys.flags.optimize)
""",
    "processors": """
import os
print(os.cpu_count() >= 1, len(os.sched_getaffinity(0)) >= 1, os.getpid() > 0, os.getloadavg()[0] >= 0)
""",
    "usage": """
import resource, time, tracemalloc
tracemalloc.start(); x = list(range(9999))
print(tracemalloc.get_traced_memory()[0] > 9999 * 8, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0,
    time.process_time() > 0)
""",
    "garbage": """
import gc, sys
print(gc.collect() >= 0, gc.isenabled(), sys.getrefcount([]), sys.getsizeof(1), sys.intern('a'))
""",
    "ctypes": """
import ctypes
c = ctypes.CDLL(None); print(c.strlen(b'hello'), c.abs(-5)); c.qsort.restype = None
F = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
a = (ctypes.c_int * 3)(3, 1, 2); c.qsort(a, 3, 4, F(lambda x, y: x[0] - y[0])); print(list(a))
""",
    "ctypes of libm": """
import ctypes, ctypes.util
m = ctypes.CDLL('libm.so.6'); m.sqrt.restype = ctypes.c_double; m.sqrt.argtypes = [ctypes.c_double]
print(m.sqrt(2.0))
""",
    "sockets in pairs": """
import socket, select
a, b = socket.socketpair(); a.sendall(b'hi'); print(select.select([b], [], [], 1)[0] == [b], b.recv(9)); a.close()
print(b.recv(9))
""",
    "selectors and pipes": """
import os, selectors
r, w = os.pipe(); s = selectors.DefaultSelector(); s.register(r, selectors.EVENT_READ, 'data'); os.write(w, b'x')
print([k.data for k, _ in s.select(1)]); s.close()
""",
    "terminal size": """
import shutil, os
print(shutil.get_terminal_size((80, 24)).columns > 0)
try: os.get_terminal_size(); print('terminal')
except OSError: print('none')
""",
    "file locks": """
import fcntl
with open('l', 'w') as f:
    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.lockf(f, fcntl.LOCK_EX); print('locked')
""",
    "own module": r"""
open('mine.py', 'w').write('x = 5\ndef f(): return __name__')
import importlib; importlib.invalidate_caches()
import mine; print(mine.x, mine.f()); open('mine.py', 'w').write('x = 66666'); print(importlib.reload(mine).x)
""",
    "own package": """
import os, sys, importlib
os.makedirs('pack'); open('pack/__init__.py', 'w').write('from .a import b'); open('pack/a.py', 'w').write('b = 7')
importlib.invalidate_caches()
import pack, runpy; print(pack.b, runpy.run_path('pack/a.py')['b'])
""",
    "importlib": """
import importlib, importlib.util, importlib.metadata
print(importlib.import_module('json').__name__, importlib.util.find_spec('no_such_module'),
    importlib.metadata.version('numpy') > '1')
try: import no_such_module
except ModuleNotFoundError as e: print(e, e.name)
""",
    "unittest": """
import unittest, sys
class T(unittest.TestCase):
    def test_a(self): self.assertEqual(1 + 1, 2)
    def test_b(self):
        with self.assertRaises(ValueError): int('x')
r = unittest.main(argv=['x'], exit=False).result; print(r.testsRun, r.wasSuccessful())
""",
    "unittest with mocks": """
import unittest.mock as m, os
with m.patch('os.getcwd', return_value='/x'): print(os.getcwd())
o = m.Mock(return_value=3); print(o(1), o.call_args)
""",
    "doctest": """
import doctest
def f(x):
    '''
    >>> f(2)
    4
    '''
    return x * 2
print(doctest.testmod())
""",
    "profile": """
import cProfile, pstats, timeit
p = cProfile.Profile(); p.enable(); sum(range(99)); p.disable()
print(pstats.Stats(p).total_calls > 0, timeit.timeit('1 + 1', number=9) > 0)
""",
    "code in text": """
code = compile('a = [n for n in range(3)]', 'x', 'exec'); names = {}; exec(code, names)
print(names['a'], eval('len(a)', names))
import code as c; print(c.compile_command('f('))
""",
    "standard library": """
import sched, cmd, shlex, getopt, fileinput, filecmp, linecache, codecs, stringprep, graphlib, numbers
import plistlib, quopri, mimetypes, webbrowser, wave, colorsys
print(shlex.split('a "b c"'), list(graphlib.TopologicalSorter({1: {2}}).static_order()),
    mimetypes.guess_type('x.png'), linecache.getline('notes.txt', 1), codecs.encode('abc', 'rot13'))
""",
    "trace of calls": """
import sys
seen = []
def t(f, e, a): seen.append(e); return t
def g(): return 1
sys.settrace(t); g(); sys.settrace(None); print(seen[:3])
""",
    "much output": "for n in range(2000): print(n, 'line' * 5)",
    "long line": "print('x' * 200000)",
}  # fmt: skip

PROGRAMS = {**DATA, **LANGUAGE, **SYSTEM}
FIRST = [next(iter(table)) for table in (DATA, LANGUAGE, SYSTEM)]
ROWS = [
    pytest.param(program, id=name, marks=pytest.mark.smoke if name in FIRST else ())
    for name, program in PROGRAMS.items()
]


def run_script(script: Path, folder: Path) -> str:
    """Return what a script prints in a folder, without a sandbox."""
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MPLBACKEND": "Agg", "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-B", str(script)],
        cwd=folder,
        env=environment | {"USER": "someone", "TMPDIR": str(script.parent), "PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("inputs")
    for name, text in INPUTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return {name: folder / name for name in INPUTS}


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a function that runs a program as a script, without a sandbox."""
    known: dict[str, str] = {}

    def run(program: str) -> str:
        if program not in known:
            folder = tmp_path_factory.mktemp("outside")
            for name, text in INPUTS.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
            script = tmp_path_factory.mktemp("program") if "__file__" not in program else folder
            (script / "program.py").write_text(program)
            known[program] = run_script(script / "program.py", folder)
        return known[program]

    return run


@pytest.fixture(scope="module")
def executors() -> Iterator[Callable[[str], SandboxExecutor]]:
    made: dict[str, SandboxExecutor] = {}

    def executor(launcher: Any) -> SandboxExecutor:
        if launcher not in made:
            made[launcher] = SandboxExecutor(limits=Limits(seconds=10, memory="1G"), launcher=launcher)
        return made[launcher]

    yield executor
    for used in made.values():
        used.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher", ["namespaces", pytest.param("bubblewrap", marks=pytest.mark.soak)], indirect=True
)
@pytest.mark.parametrize("program", ROWS)
def test_an_ordinary_program_prints_the_same_as_outside(
    executors: Callable[[str], SandboxExecutor],
    launcher: str,
    outside: Callable[[str], str],
    inputs: dict[str, Path],
    program: str,
) -> None:
    done = executors(launcher).run(program, files=inputs)
    assert done.error is None, done.error.traceback
    assert done.ok, done
    assert done.stdout == outside(program)
