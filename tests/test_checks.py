from __future__ import annotations

import ast
import gzip
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.checks import (
    POLICIES,
    Check,
    as_advice,
    find_problems,
    imports_available,
    imports_only,
    names_defined,
    no_calls,
    parses,
    prints_something,
    resolve_checks,
    results_used,
    security,
    shorter_than,
)
from code_chains.errors import ConfigurationError
from code_chains.state import Problem

from .test_ordinary import PROGRAMS

RISKY = r"""
import os; f = os.system; f('ls')
import os as o; o.popen('ls')
from os import system as compute; compute('ls')
from os import *; system('ls')
import os; getattr(os, 'sys' + 'tem')('ls')
import os; name = ''.join(['sys', 'tem']); getattr(os, name)('ls')
import os; g = getattr; g(os, 'metsys'[::-1])('ls')
import os, sys; getattr(os, sys.argv[0])('ls')
import os; vars(os)['system']('ls')
import os; os.__dict__.get('sys' f'tem')('ls')
__import__('os').system('ls')
__import__(name='o' 's').system('ls')
i = __import__; i('subprocess').run(['ls'])
import importlib; importlib.import_module('os').remove('a.csv')
import importlib, sys; importlib.import_module(sys.argv[1])
import sys; sys.modules['os'].system('ls')
import random; random._os.system('ls')
import posix; posix.system('ls')
import operator, os; operator.methodcaller('system', 'ls')(os)
import os; [m.system('ls') for m in [os]]
import os; modules = {'a': os}; modules['a'].system('ls')
import os; (lambda m=os: m.system('ls'))()
import os; object.__getattribute__(os, 'system')('ls')
import subprocess as sp; print(sp.check_output('ls', shell=True))
import os; os.fork()
import pty; pty.spawn('sh')
print(eval('1 + 1'))
e = eval; print(e('1 + 1'))
__builtins__['eval']('1')
import builtins; builtins.exec('x = 1')
globals()['__builtins__'].eval('1')
@exec\n@input\nclass X: pass
print((lambda: exec)()('x = 1'))
import pickle; pickle.loads(b'')
import ctypes; ctypes.CDLL(None).system(b'ls')
print(().__class__.__base__.__subclasses__())
print(getattr(int, '__subclasses__')())
print(print.__self__.eval('1'))
def f(): pass\nprint(f.__globals__)
def f(): yield\nprint(f().gi_frame.f_back.f_globals)
print('{0.__class__.__mro__}'.format(1))
print('{0.__init__.__globals__[secret]}'.format(1))
match 1:\n    case object(__class__=c, __subclasses__=s): print(c, s)
from pathlib import Path\nfor p in Path('.').glob('*.csv'): p.unlink()
import shutil; shutil.rmtree('.')
print(open('/etc/passwd').read())
from pathlib import Path; print(Path('/proc/self/environ').read_text())
import pandas as pd; print(pd.read_csv('../../home/me/data.csv'))
import os; print(os.listdir('/root'))
open('/usr/lib/x.py', 'w').write('x')
from pathlib import Path; Path('/tmp/../srv/x').write_text('x')
import pandas as pd; pd.DataFrame().to_csv('/opt/x.csv')
while True: print('x')
while 1:\n    for n in range(3):\n        if n: break
"""
"""Programs, one a line, that `security` finds something in."""

WRONG = r"""
print(math.pi)
total = 3\nprint(totl)
df = pd.DataFrame()\nprint(df)
print(1
for n in range(3): print n
def f(x): return x\nprint(f(y))
return 5
def f():\n    n += 1\nprint(f())
x = = 3
prnt(3)
"""
"""Programs that cannot run."""

SILENT = r"""
total = sum([1, 2])
import math\narea = math.pi * 2 ** 2
def f(x): return x + 1\ny = f(3)
import pandas as pd\nmean = pd.read_csv('a.csv').groupby('k').v.mean()
import csv\nwith open('a.csv') as f: rows = list(csv.reader(f))
words = {}\nfor w in 'a b'.split(): words[w] = words.get(w, 0) + 1
import numpy as np\nx = np.array([1, 2]).sum()
"""
"""Programs after which there is nothing to see."""

UNUSED = r"""
x = [2, 1]\nsorted(x)\nprint(x)
x = 1\nx == 3\nprint(x)
x = 1\nx\nprint(x)
x = 1\nx + 1\nprint(x)
def f(x):\n    [y for y in x]\n    return x\nprint(f([]))
"""
"""Programs that throw a value away."""

GOOD = r"""
print(sum(range(10)))
2 ** 10
result = 6 * 7
import math; print(math.sqrt(2))
import re; print(re.compile('a+').findall('caat'))
import pandas as pd; df = pd.DataFrame({'a': [1]}); print(df.eval('a + 1'), df.query('a == 1'))
def system(x): return x\nprint(system('ls'))
def eval(x): return x\nprint(eval('1'))
class Model:\n    def eval(self): return self\n    def system(self): return 1\nprint(Model().eval().system())
system = {'x': 1}\nprint(system['x'])
import os; print(os.path.join('a', 'b'), os.getcwd(), os.listdir('.'), os.environ.get('HOME'))
from os import path; print(path.exists('a.csv'))
from statistics import mean as eval; print(eval([1, 2]))
code = 'x = 1'\nprint(len(code))
socket = 3\nprint(socket + 1)
import ast; print(ast.literal_eval('[1]'))
class A:\n    def __init__(self): self.__dict__['x'] = 1\n    def __add__(self, o): return self\nprint(A().__class__.__name__)
class B(dict):\n    def __init__(self): super().__init__(a=1)\n    def __repr__(self): return type(self).__name__\nprint(B())
print('{:.2f} {0.real} {name}'.format(1.0, name='x') if False else '{:.2f}'.format(1))
print('{0.__class__.__name__}'.format(1), f'{int.__name__}')
while True:\n    if input(): break
def f():\n    n = 0\n    while True:\n        n += 1\n        if n > 9: return n\nprint(f())
def count():\n    n = 0\n    while True:\n        yield n\n        n += 1\nprint(next(count()))
import sys\nwhile True: print(1); sys.exit()
it = iter([1])\ntry:\n    while True: print(next(it))\nexcept StopIteration: pass
open('out.txt', 'w').write('x')
open('/tmp/out.txt', 'w').write('x')
from pathlib import Path; Path('a').mkdir(); (Path('a') / 'b').write_text('x')
import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('x.png')
import json; data = json.load(open('data.json')); print(json.dumps(data))
x = [3, 1]; x.sort(); x.remove(3); print(x)
def main(): print('x')\nmain()
import logging; logging.warning('x')
import sys; sys.stdout.write('x')
raise ValueError('no answer')
import sys; sys.exit('no answer')
import numpy as np; a = np.arange(4).reshape(2, 2); print(a.T @ a, getattr(np, 'sum')(a))
from math import *; print(sqrt(2), pi)
try:\n    import ujson as json\nexcept ImportError:\n    import json\nprint(json.dumps(1))
from collections import Counter; print(Counter('abca').most_common(1))
import multiprocessing as mp; print(mp.cpu_count())
def f(n): return 1 if n < 2 else n * f(n - 1)\nprint(f(5))
import importlib; print(importlib.import_module('json').dumps(1))
import datetime as dt; print(dt.datetime(2024, 1, 1).strftime('%d'))
from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(1))
import functools; f = functools.partial(print, 'x'); f()
[print(n) for n in range(3)]\nx = 1
list(map(print, [1, 2]))\nx = 1
try: int('x')\nexcept ValueError: print('no')
'It says what it does.'\n...\nprint(1)
print('/etc/passwd is a file'); print('/home'.startswith('/h'))
import compileall, sysconfig; print(compileall.__name__, sysconfig.__name__)
import multiprocessing, queue; print(queue.Queue().qsize())
"""
"""Programs in which there is nothing to find."""


def rows(corpus: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in corpus.strip().splitlines()]


def errors(code: str, policy: str) -> list[Problem]:
    return [problem for problem in find_problems(code, POLICIES[policy]) if problem.severity == "error"]


def found(code: str, check: Check) -> list[str]:
    return [str(problem) for problem in check(code)]


def test_parses_says_where() -> None:
    assert parses("x = 1\nprint(1")[0].line == 2


def test_parses_lets_top_level_await_pass() -> None:
    assert parses("import asyncio\nawait asyncio.sleep(0)") == []


def test_a_null_byte_is_a_problem() -> None:
    assert parses("x = '\0'")[0].check == "parses"


def test_names_defined_finds_an_unknown_name() -> None:
    assert names_defined("print(math.pi)") == [Problem("names_defined", "undefined name 'math'", 1)]


def test_names_defined_leaves_syntax_to_parses() -> None:
    assert names_defined("print(") == []


def test_names_defined_knows_builtins_and_comprehensions() -> None:
    assert names_defined("print([n for n in range(3)], __name__)") == []


def test_shorter_than_counts_lines() -> None:
    assert shorter_than(2)("a = 1\nb = 2\nc = 3")[0].message == "The program has 3 lines; at most 2 are allowed"


@pytest.mark.parametrize("lines", [0, -1, True, "many"])
def test_shorter_than_refuses_what_is_no_number(lines: int) -> None:
    with pytest.raises(ConfigurationError, match="lines="):
        shorter_than(lines)


def test_a_users_function_is_a_check() -> None:
    def no_prints(code: str) -> list[Problem]:
        return [Problem("no_prints", "no printing")] if "print" in code else []

    assert [problem.check for problem in find_problems("print(1)", resolve_checks(no_prints))] == ["no_prints"]


@pytest.mark.parametrize("checks", ["paranoid", 5, [parses, "parses"]])
def test_an_unknown_policy_is_refused(checks: object) -> None:
    with pytest.raises(ConfigurationError, match=r"checks=.*standard"):
        resolve_checks(checks)  # type: ignore[arg-type]


@given(st.text())
def test_checks_never_raise(code: str) -> None:
    assert isinstance(find_problems(code, POLICIES["standard"]), list)


def test_the_standard_policy_lets_ordinary_programs_pass() -> None:
    programs = (Path(__file__).parent.parent / "code_chains").rglob("*.py")
    assert [p for path in programs for p in find_problems(path.read_text(), POLICIES["standard"])] == []
