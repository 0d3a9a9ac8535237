from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.analysis.autofix import autofix
from code_chains.analysis.checks import names_defined
from code_chains.executors import SandboxExecutor
from code_chains.state import ErrorReport, Execution, Verdict

SILENT = {
    "problems": [],
    "execution": Execution("ok"),
    "verdict": Verdict("failed", "none", "printed nothing"),
}
IMPORTS = {
    "a module": ("print(math.pi)", "import math"),
    "an alias": ("print(np.mean([1]))", "import numpy as np"),
    "a member": ("print(Counter('aab'))", "from collections import Counter"),
    "a class that is named like its module": ("print(datetime(2024, 1, 1))", "from datetime import datetime"),
    "its methods": ("print(datetime.now())", "from datetime import datetime"),
    "the module of that name": ("print(datetime.date(2024, 1, 1), datetime.timedelta(1))", "import datetime"),
}
SHOWN = {
    "a name": ("total = sum([1, 2])", "print(total)"),
    "a name in the last branch": ("if True:\n    total = 3", "print(total)"),
    "a function that nobody called": ("def main():\n    print(3)", "main()"),
    "an expression in a branch": ("def f(): return 3\nif __name__ == '__main__':\n    f()", "print(f())"),
}
REFERENCES = """Functions that are installed:
from orchard import Lot
Lot(kg: float)

from orchard.tills import Counter
Counter(number: int)

from orchard import appraise, label
print(label(2))
"""
UNKNOWN = [
    "print('Mean:', mean)",
    "print('product', product)",
    "count += 1",
    "print(total)",
    "print(helper(3))",
    "def f(x): return x",
    "print(",
    "",
    "x = [1]\nx.append(2)\nfor y in x: pass",
]


@pytest.mark.parametrize(("code", "line"), IMPORTS.values(), ids=IMPORTS)
def test_a_well_known_import_is_added(code: str, line: str) -> None:
    fixed = autofix({**SILENT, "code": code, "problems": names_defined(code)})
    assert fixed is not None
    assert (fixed.code, fixed.autofixes) == (f"{line}\n{code}", (f"added `{line}`",))


SHOWN_IMPORTS = {
    "a class of a package": ("print(Lot(1))", "from orchard import Lot"),
    "one of several of an example": ("print(label(1))", "from orchard import label"),
    "a name that is well known elsewhere": ("print(Counter(1))", "from orchard.tills import Counter"),
}


@pytest.mark.parametrize(("code", "line"), SHOWN_IMPORTS.values(), ids=SHOWN_IMPORTS)
def test_a_missing_import_that_the_context_shows_is_added(code: str, line: str) -> None:
    fixed = autofix({**SILENT, "code": code, "problems": names_defined(code)}, REFERENCES)
    assert fixed is not None
    assert fixed.code == f"{line}\n{code}"


def test_an_import_that_the_context_shows_from_two_modules_is_not_certain() -> None:
    code = "print(Lot(1))"
    context = "from orchard import Lot\nfrom mill import Lot"
    assert autofix({**SILENT, "code": code, "problems": names_defined(code)}, context) is None


def test_an_import_that_only_the_run_missed_is_added(sandbox: SandboxExecutor) -> None:
    code = "from __future__ import annotations\nprint(eval('math.pi'))"
    fixed = autofix({**SILENT, "code": f"{code}\nmath.pi", "execution": sandbox.run(code)})
    assert fixed is not None
    assert fixed.code.splitlines()[:2] == ["from __future__ import annotations", "import math"]


@pytest.mark.parametrize(("code", "line"), SHOWN.values(), ids=SHOWN)
def test_an_outcome_that_nobody_sees_is_shown(sandbox: SandboxExecutor, code: str, line: str) -> None:
    fixed = autofix({**SILENT, "code": code})
    assert fixed is not None
    assert (fixed.code.strip().splitlines()[-1].strip(), sandbox.run(fixed.code).output) == (line, "3")


@pytest.mark.parametrize("code", UNKNOWN)
def test_what_is_not_certain_is_left_to_the_model(code: str) -> None:
    assert autofix({**SILENT, "code": code, "problems": names_defined(code)}) is None


COLUMNS = "- file `votes.csv`\n  columns: `Year` (int), `# of\\nvotes` (int), `Seat ` (text), `Name` (text), `name` (text)"


@pytest.mark.parametrize(
    ("written", "column"),
    [("# of votes", "# of\nvotes"), ("# Of  Votes", "# of\nvotes"), ("seat", "Seat "), ("year", "Year")],
)
def test_a_column_gets_its_name_where_only_blanks_and_capitals_differ(written: str, column: str) -> None:
    outcome = {**SILENT, "execution": Execution("error", error=ErrorReport("KeyError", repr(written)))}
    fixed = autofix({**outcome, "code": f"df = read()\nprint(df[{written!r}].max())"}, "", COLUMNS)
    assert fixed is not None
    assert fixed.code == f"df = read()\nprint(df[{column!r}].max())"
    assert fixed.autofixes == (f"named the column {column!r}",)


@pytest.mark.parametrize("written", ["votes", "NAME", "Seats", "Name"])
def test_another_column_is_left_to_the_model(written: str) -> None:
    outcome = {**SILENT, "execution": Execution("error", error=ErrorReport("KeyError", repr(written)))}
    assert autofix({**outcome, "code": f"print(df[{written!r}])"}, "", COLUMNS) is None


def test_a_docstring_stays_first() -> None:
    code = '"""What it is."""\nprint(math.pi)'
    fixed = autofix({**SILENT, "code": code, "problems": names_defined(code)})
    assert fixed is not None
    assert fixed.code.split("\n") == ['"""What it is."""', "import math", "print(math.pi)"]


def test_nothing_is_mended_twice() -> None:
    code = "print(math.pi)"
    assert (
        autofix(
            {**SILENT, "code": code, "problems": names_defined(code), "autofixes": ("added `import math`",)}
        )
        is None
    )


@given(st.text())
def test_mending_never_raises(code: str) -> None:
    autofix({**SILENT, "code": code, "problems": names_defined(code)})
