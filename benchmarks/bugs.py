"""Ways in which models get programs wrong, applied to right ones, and the cases which that makes.

`python -m benchmarks.bugs` checks the corpora: right programs are right, and every wrong one really is wrong.
"""

from __future__ import annotations

import ast
import copy
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from benchmarks.corpora import read_corpus
from benchmarks.functions import FUNCTIONS, Example, Function
from benchmarks.scripts import SCRIPTS, Script

_STEPS = 20_000
_MARK = "values of the examples: "
_HARMLESS = ("fence_junk",)
Bug = Callable[[Function, int], str | None]


@dataclass(frozen=True)
class Case:
    """A question with a wrong reply and a right one.

    Attributes:
        bug: The class of bug.
        task: The question.
        right: The right program.
        wrong: The wrong reply, as a model writes it.
        wrong_code: The program that is meant by it.
        name: The function that is asked for, if one is.
        examples: What that function returns.
        variables: What is given to a script.
        pattern: What the output of a script must match.
    """

    bug: str
    task: str
    right: str
    wrong: str
    wrong_code: str
    name: str = ""
    examples: tuple[Example, ...] = ()
    variables: dict[str, Any] = field(default_factory=dict)
    pattern: str = ""

    @property
    def strip_control_chars(self) -> bool:
        """Whether the reply is merely messy, and its program right."""
        return self.bug in _HARMLESS

    def probe(self, code: str) -> str:
        """A program that runs the code and shows what its function returns; what it should return is not in it."""
        if not self.name:
            return code
        arguments = [args for args, _ in self.examples]
        return f"{code}\nprint()\nprint({_MARK!r} + repr([{self.name}(*args) for args in {arguments!r}]))\n"

    def holds(self, output: str) -> bool:
        """Whether the output of the probe shows a right program."""
        if not self.name:
            return bool(re.search(self.pattern, output))
        shown = [line.removeprefix(_MARK) for line in output.splitlines() if line.startswith(_MARK)]
        try:
            return bool(shown) and ast.literal_eval(shown[-1]) == [expected for _, expected in self.examples]
        except (ValueError, SyntaxError):
            return False


def fence(code: str) -> str:
    """A tidy reply."""
    return f"```python\n{code}```"


class _EndlessError(Exception):
    """A program took too many steps."""


def tried(function: Function, code: str) -> list[Any] | str:
    """What a variant of a function returns for its examples, or the name of the error it ends with; in this process."""
    steps = 0

    def count(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        steps += 1
        if steps > _STEPS:
            raise _EndlessError
        return count

    before = sys.gettrace()
    space: dict[str, Any] = {}
    try:
        exec(compile(code, "<variant>", "exec"), space)
        sys.settrace(count)
        return [space[function.name](*copy.deepcopy(args)) for args, _ in function.examples]
    except Exception as error:
        return type(error).__name__
    finally:
        sys.settrace(before)


def _expected(function: Function) -> list[Any]:
    return [expected for _, expected in function.examples]


def _body(function: Function) -> ast.FunctionDef:
    tree = ast.parse(function.source)
    return next(
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function.name
    )


def _replaced(source: str, node: ast.expr, text: str) -> str:
    """The source with other text in the place of an expression on one line."""
    lines = source.splitlines(keepends=True)
    line = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (line[: node.col_offset] + text.encode() + line[node.end_col_offset :]).decode()
    return "".join(lines)


def missing_import(function: Function, turn: int) -> str | None:
    """The lines that import are left out."""
    code = re.sub(r"^(import|from) .*\n+", "", function.source, flags=re.MULTILINE)
    return code if code != function.source and tried(function, code) == "NameError" else None


def wrong_name(function: Function, turn: int) -> str | None:
    """One use of a variable is misspelt."""
    body = _body(function)
    names = {arg.arg for arg in body.args.args}
    names |= {
        node.id for node in ast.walk(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    uses = [
        n for n in ast.walk(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names
    ]
    for use in [*uses[turn % len(uses) :], *uses]:
        misspelt = use.id[:-1] if len(use.id) > 4 else use.id + "s"
        if misspelt not in names and ast.get_source_segment(function.source, use) == use.id:
            code = _replaced(function.source, use, misspelt)
            if tried(function, code) == "NameError":
                return code
    return None


def _bounds(body: ast.FunctionDef) -> Iterator[ast.expr]:
    """Expressions that count: ends of ranges and slices, places, and then any whole number."""
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            yield node.args[-1] if len(node.args) < 3 else node.args[1]
        if isinstance(node, ast.Slice):
            yield from (bound for bound in (node.upper, node.lower) if bound)
    for node in ast.walk(body):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield node


def off_by_one(function: Function, turn: int) -> str | None:
    """The end of a range or slice, or a number, is one too large or too small."""
    for node in _bounds(_body(function)):
        text = ast.get_source_segment(function.source, node)
        if text is None or ast.dump(ast.parse(text, mode="eval").body) != ast.dump(node):
            continue  # Before 3.12 nodes inside of f-strings do not say where they are.
        for sign in ("+-", "-+")[turn % 2]:
            moved = str(int(text) + int(f"{sign}1")) if text.isdigit() else f"{text} {sign} 1"
            code = _replaced(function.source, node, moved)
            values = tried(function, code)
            if values not in (_expected(function), "SyntaxError"):
                return code
    return None


def wrong_column(function: Function, turn: int) -> str | None:
    """A key of the rows is not called what the program calls it."""
    keys = dict.fromkeys(re.findall(r'\["(\w+)"\]', function.source))
    for key in keys:
        other = (key.capitalize(), f"{key}s", f"{key}_name")[turn % 3]
        code = function.source.replace(f'["{key}"]', f'["{other}"]')
        if tried(function, code) == "KeyError":
            return code
    return None


def infinite_loop(function: Function, turn: int) -> str | None:
    """The function never ends."""
    return re.sub(rf"(def {function.name}\(.*\n)", r"\1    while True:\n        pass\n", function.source)


_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Add, ast.Sub)),
    *((ast.And, ast.Or), (ast.FloorDiv, ast.Mod), (ast.Div, ast.Mult), (ast.BitAnd, ast.BitOr)),
)
_SWAPS = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_OTHERS = {
    "max": "min",
    "min": "max",
    "sum": "len",
    "sorted": "list",
    "reversed": "list",
    "nlargest": "nsmallest",
}
_OTHERS |= {
    "lower": "upper",
    "upper": "lower",
    "bisect_right": "bisect_left",
    "rstrip": "lstrip",
    "lcm": "gcd",
}


class _Swap(ast.NodeTransformer):
    """Puts another operation in the place of the one at a number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def visit(self, node: ast.AST) -> Any:
        """Count what can be replaced, and replace one."""
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        truth = isinstance(node, ast.Constant) and isinstance(node.value, bool)
        if type(node) in _SWAPS or name in _OTHERS or truth:
            self.left -= 1
            if self.left == -1:
                return self._other(node)
        return self.generic_visit(node)

    def _other(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.Name():
                return ast.Name(_OTHERS[node.id], node.ctx)
            case ast.Attribute():
                return ast.Attribute(node.value, _OTHERS[node.attr], node.ctx)
            case ast.Constant():
                return ast.Constant(not node.value)
        other: ast.AST = _SWAPS[type(node)]()
        return other


def wrong_answer(function: Function, turn: int) -> str | None:
    """One operation is another; it runs, returns what looks right, and is wrong for an example."""
    expected = _expected(function)
    for number in range(40):
        code = ast.unparse(ast.fix_missing_locations(_Swap(number).visit(ast.parse(function.source)))) + "\n"
        values = tried(function, code)
        if (
            isinstance(values, list)
            and values != expected
            and list(map(type, values)) == list(map(type, expected))
        ):
            return code
    return None


def wrong_type(function: Function, turn: int) -> str | None:
    """The function returns text instead of the value."""
    body = _body(function)
    returned = [node.value for node in ast.walk(body) if isinstance(node, ast.Return) and node.value]
    code = function.source
    for value in sorted(returned, key=lambda node: -node.lineno):
        if value.lineno != value.end_lineno:
            return None
        code = _replaced(code, value, f"str({ast.get_source_segment(function.source, value)})")
    return code if tried(function, code) not in (_expected(function), "SyntaxError") else None


_CHEATS = [entry["program"] for entry in read_corpus("cheats")]


def cheats(function: Function, turn: int) -> str | None:
    """The program does not do the task but tries to pass whatever is tested."""
    return str(_CHEATS[turn % len(_CHEATS)]).format(name=function.name)


_JUNK = [entry["reply"] for entry in read_corpus("junk")]


def fence_junk(function: Function, turn: int) -> str | None:
    """The program is right; what is around it is a mess."""
    indented = "".join(f"   {line}\n" for line in function.source.splitlines())
    return str(_JUNK[turn % len(_JUNK)]).format(code=function.source, indented=indented)


FUNCTION_BUGS: tuple[Bug, ...] = (
    *(wrong_column, missing_import, wrong_answer, off_by_one, wrong_type),
    *(wrong_name, infinite_loop, cheats, fence_junk),
)


def _printed(script: Script) -> tuple[str, str]:
    """A script without its last line, and what that prints."""
    *lines, last = script.source.splitlines()
    call = re.fullmatch(r"print\((.*)\)", last)
    assert call, f"the last line is no print: {last}"
    return "\n".join(lines) + "\n", call[1]


def prints_nothing(script: Script, turn: int) -> str | None:
    """The answer is worked out and kept, or sits in a function that nobody calls."""
    before, shown = _printed(script)
    if turn % 2:
        return f"{before}answer = {shown}\n"
    return "def main():\n" + "".join(f"    {line}".rstrip() + "\n" for line in script.source.splitlines())


def forgets_print(script: Script, turn: int) -> str | None:
    """The last line is the answer, as in a notebook."""
    before, shown = _printed(script)
    return f"{before}{shown}\n"


def _script_import(script: Script, turn: int) -> str | None:
    code = re.sub(r"^(import|from) .*\n+", "", script.source, flags=re.MULTILINE)
    return code if code != script.source else None


def _script_column(script: Script, turn: int) -> str | None:
    key = re.search(r'\["(\w+)"\]', script.source)
    return script.source.replace(f'["{key[1]}"]', f'["{key[1].capitalize()}"]') if key else None


SCRIPT_BUGS: dict[str, Callable[[Script, int], str | None]] = {
    "wrong_column": _script_column,
    "missing_import": _script_import,
    "prints_nothing": prints_nothing,
    "forgets_print": forgets_print,
}


def _function_case(function: Function, bug: str, made: str) -> Case:
    strip_control_chars = bug in _HARMLESS
    code, reply = (function.source, made) if strip_control_chars else (made, fence(made))
    return Case(bug, function.task, function.source, reply, code, function.name, function.examples)


def _script_case(script: Script, bug: str, code: str) -> Case:
    return Case(
        bug, script.task, script.source, fence(code), code, variables=script.variables, pattern=script.pattern
    )


def build() -> list[Case]:
    """All cases, the same each time: a task takes the classes with the fewest cases so far, and columns where it has any."""
    counts: Counter[str] = Counter()
    cases: list[Case] = []
    for number, function in enumerate(FUNCTIONS):
        wanted = 2 if number % 4 == 0 else 1
        makers = sorted(FUNCTION_BUGS, key=lambda bug: (bug is not wrong_column, counts[bug.__name__]))
        for bug, code in _first(
            [(bug.__name__, bug(function, counts[bug.__name__])) for bug in makers], wanted
        ):
            cases.append(_function_case(function, bug, code))
            counts[bug] += 1
    for script in SCRIPTS:
        bugs = sorted(SCRIPT_BUGS, key=lambda bug: counts[bug])
        for bug, code in _first([(bug, SCRIPT_BUGS[bug](script, counts[bug])) for bug in bugs], 2):
            cases.append(_script_case(script, bug, code))
            counts[bug] += 1
    return sorted(cases, key=lambda case: case.bug)


def _first(made: Sequence[tuple[str, str | None]], count: int) -> list[tuple[str, str]]:
    return [(bug, code) for bug, code in made if code is not None][:count]


def _run(case: Case, code: str) -> str:
    """What a program prints, in a plain process; empty if it does not end in 2 seconds."""
    given = "".join(f"{name} = {value!r}\n" for name, value in case.variables.items())
    command = [sys.executable, "-I", "-c", given + case.probe(code)]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=2, check=False).stdout
    except subprocess.TimeoutExpired:
        return ""


def complaints(cases: Sequence[Case]) -> Iterator[str]:
    """What is wrong with the corpora."""
    for function in FUNCTIONS:
        values, expected = tried(function, function.source), _expected(function)
        if values != expected or list(map(type, values)) != list(map(type, expected)):
            yield f"{function.name}: {values} are not the examples {expected}"
        if not 3 <= len(function.examples) <= 5:
            yield f"{function.name} has {len(function.examples)} examples"
    for case in cases:
        if not case.holds(_run(case, case.right)):
            yield f"{case.bug}: the right program fails: {case.task}"
        if case.holds(_run(case, case.wrong_code)) is not case.strip_control_chars:
            yield f"{case.bug}: the wrong program is right: {case.task}"


def main() -> int:
    """Print the counts, and what is wrong."""
    cases = build()
    imports = sum(bool(re.match("import|from", function.source)) for function in FUNCTIONS)
    print(
        f"{len(FUNCTIONS)} functions, {imports} of them import something; {len(SCRIPTS)} scripts; {len(cases)} cases\n"
    )
    for bug, count in sorted(Counter(case.bug for case in cases).items()):
        print(f"{bug:15}{count:4}")
    found = list(complaints(cases))
    print("\n" + ("\n".join(found) or "All right programs are right, all wrong ones wrong."))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
