"""Whether a program may show something else the next time: it looks at a clock, draws lots, or asks the network."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from code_chains.calls import Reading, Use, match, read, words

__all__ = ["is_repeatable"]

_CHANGING = words(
    "time datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow datetime.date.today random numpy.random"
    " pandas.Timestamp.now pandas.Timestamp.today pandas.Timestamp.utcnow uuid.uuid1 uuid.uuid4 secrets os.urandom os.getpid"
    " os.times os.environ os.getenv tempfile builtins.id builtins.hash socket urllib.request http.client requests httpx"
    " aiohttp ftplib threading multiprocessing concurrent asyncio subprocess os.popen os.system os.getrandom os.getppid"
    " os.getloadavg os.path.getmtime os.path.getctime os.path.getatime email.utils.localtime email.utils.formatdate"
    " email.utils.make_msgid timeit cProfile profile psutil tracemalloc resource dateparser"
)
_STILL = words("time.sleep time.strptime time.mktime time.struct_time")
_SEEDS = words("random.seed numpy.random.seed")
_GENERATORS = words("random.Random numpy.random.default_rng numpy.random.RandomState")
_LOTS = words(
    "sample shuffle rvs bootstrap permutation_test monte_carlo_test differential_evolution dual_annealing basinhopping"
)
_LEARNING = words("torch tensorflow keras jax faker")
_THEIR_SEEDS = words("manual_seed set_seed set_random_seed seed seed_instance seed_everything PRNGKey key")
_STATES = words("random_state seed rng")
_LEARNING_STILL = words(
    "sklearn.metrics sklearn.preprocessing sklearn.pipeline sklearn.compose sklearn.impute sklearn.feature_extraction"
    " sklearn.naive_bayes sklearn.neighbors sklearn.base sklearn.linear_model.LinearRegression sklearn.linear_model.Ridge"
    " sklearn.linear_model.Lasso sklearn.linear_model.ElasticNet sklearn.linear_model.LogisticRegression"
    " sklearn.datasets.load_iris sklearn.datasets.load_wine sklearn.datasets.load_digits sklearn.datasets.load_diabetes"
    " sklearn.datasets.load_breast_cancer sklearn.model_selection.cross_val_score sklearn.cluster.DBSCAN"
    " sklearn.model_selection.cross_validate sklearn.model_selection.cross_val_predict sklearn.svm.SVR"
    " sklearn.cluster.AgglomerativeClustering"
)
_ADDRESS = r"(?:https?|ftps?|s3|gs|hf)://"
_IN_SQL = re.compile(
    r"\b(?:now|random|randomblob|rand|current_\w+|get_current_\w+|today|uuid\w*|gen_random_uuid|setseed|using\s+sample"
    r"|(?:transaction|clock|statement)_timestamp|localtime|localtimestamp|sysdate|getdate|tablesample|getenv"
    rf"|age\s*\(|(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)|{_ADDRESS})",
    re.IGNORECASE,
)
_SQL = re.compile(r"\s*(?:select|with|insert|create|update|replace|values|from)\b", re.IGNORECASE)
_FROM_AFAR = re.compile(_ADDRESS, re.IGNORECASE)
_CLOCKS = words("now today")
_DEVICES = ("/dev/urandom", "/dev/random", "/proc/")
_READERS = re.compile(r"(?:read|scan|load|fetch|open|urlopen|urlretrieve|connect|imread|genfromtxt|execute|sql|query)")
_OF_A_FILE = words("st_size st_mode")
_TIMES_OF_A_FILE = words("stat lstat")
_SETS = words("builtins.set builtins.frozenset builtins.object")
_IN_TURN = words(
    "builtins.list builtins.tuple builtins.enumerate builtins.iter builtins.map builtins.zip builtins.filter"
)
_OF_SETS = words("union intersection difference symmetric_difference copy")
_SHOWN = words(
    "builtins.print builtins.str builtins.repr builtins.format builtins.next pprint.pprint pprint.pformat json.dumps"
    " pandas.DataFrame pandas.Series numpy.array builtins.dict builtins.dict.fromkeys collections.Counter"
)
_SHOWING = words("join format write")


def is_repeatable(code: str) -> bool:
    """Whether a program shows the same each time, as far as reading it can tell. In doubt it does not.

    A program that seeds its random numbers with a value of its own, before it draws any, is repeatable. Python is read by
    its names and texts; anything else is taken for SQL.

    Example:
        >>> is_repeatable("print(sum(range(6)))"), is_repeatable("import random as r; print(r.random())")
        (True, False)
    """
    reading = read(code)
    if reading is None:
        return not _IN_SQL.search(code)
    imported = any(
        match(found.name, _CHANGING - {"time", "random", "numpy.random", "tempfile"}) for found in reading.imports
    )
    if imported or not _is_seeded(reading) or _asks_outside(reading):
        return False
    try:
        return _Lots(reading).are_still() and not _times(reading) and not _Unordered(reading).is_shown()
    except RecursionError:  # An expression of thousands of operators: nobody knows.
        return False


class _Lots:
    """What a program does by its names, beside where it seeds random numbers."""

    def __init__(self, reading: Reading) -> None:
        self.uses = reading.uses
        self.pandas = any(match(found.name, {"pandas"}) for found in reading.imports)
        self.seeds = [use for use in reading.uses if use.name in _SEEDS | _GENERATORS and _has_argument(use)]

    def are_still(self) -> bool:
        """Whether nothing it names may come out otherwise."""
        return all(self._is_still(use) for use in self.uses)

    def _is_still(self, use: Use) -> bool:
        name = use.name
        if name in _GENERATORS:
            return _has_argument(use)
        if any(name.startswith(f"{one}.") for one in _GENERATORS):
            return True  # Made with a seed, or it is said where it was made.
        if name in _SEEDS:
            return _has_argument(use) or not use.call
        if use.last in _LOTS and name.startswith(("?", "scipy.", "sklearn.")):
            return not use.call or self._is_given_a_seed(use)
        if name.startswith("sklearn.") and use.call and not match(name, _LEARNING_STILL):
            return self._is_given_a_seed(use)
        return name in _STILL or name in ("time", "random", "numpy.random") or self._is_no_lot(use)

    def _is_no_lot(self, use: Use) -> bool:
        module = match(use.name, {"random", "numpy.random"})
        if module and "SystemRandom" not in use.name:
            return any(seed.name == f"{module}.seed" and _place(seed) <= _place(use) for seed in self.seeds)
        return not match(use.name, _CHANGING)

    def _is_given_a_seed(self, use: Use) -> bool:
        states = [one.value for one in use.call.keywords if one.arg in _STATES] if use.call else []
        if states:
            return not any(isinstance(state, ast.Constant) and state.value is None for state in states)
        needs_numpy = self.pandas or not use.name.startswith("?")
        return any(
            _place(seed) < _place(use) and (not needs_numpy or seed.name == "numpy.random.seed") for seed in self.seeds
        )


def _place(use: Use) -> tuple[int, int]:
    return use.line, use.call.col_offset if use.call else 0


def _has_argument(use: Use) -> bool:
    given = [*use.call.args, *(one.value for one in use.call.keywords)] if use.call else []
    return bool(given) and not (isinstance(given[0], ast.Constant) and given[0].value is None)


def _is_seeded(reading: Reading) -> bool:
    """Whether libraries that learn or make things up are told where to begin, if there are any."""
    if not any(match(found.name, _LEARNING) for found in reading.imports):
        return True
    return any(use.last in _THEIR_SEEDS and _has_argument(use) for use in reading.uses)


def _texts(reading: Reading) -> Iterator[str]:
    for node in ast.walk(reading.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))


def _asks_outside(reading: Reading) -> bool:
    """Whether its texts name a clock, a device or an address, or SQL does."""
    texts = list(_texts(reading))
    if any(text.strip().lower() in _CLOCKS or text.startswith(_DEVICES) for text in texts):
        return True
    if any(_SQL.match(text) and _IN_SQL.search(text) for text in texts):
        return True
    return any(map(_FROM_AFAR.match, texts)) and any(_READERS.match(use.last) for use in reading.uses if use.call)


def _times(reading: Reading) -> bool:
    """Whether it looks at more of a file than its size."""
    still = {
        id(node.value) for node in ast.walk(reading.tree) if isinstance(node, ast.Attribute) and node.attr in _OF_A_FILE
    }
    return any(use.call and use.last in _TIMES_OF_A_FILE and id(use.call) not in still for use in reading.uses)


class _Unordered:
    """What comes in another order in another process: sets, above all of texts. Addresses change, too."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.nodes = list(ast.walk(reading.tree))
        self.names: set[str] = set()
        sorted_later = {
            node.func.value.id
            for node in self.nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr == "sort"
        }
        for _ in range(3):  # What is named after what is named after a set.
            self.names |= {name for node in self.nodes for name in self._named(node)} - sorted_later

    def is_shown(self) -> bool:
        """Whether any of it is printed, joined or gone through in turn."""
        return any(self._is(shown) for node in self.nodes for shown in self._shown(node))

    def _named(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if self._is(value):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if self._is(value):
                yield name
            case ast.FunctionDef(name=name):
                returned = (one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value)
                yield from (f"{name}()" for value in returned if self._is(value))

    def _shown(self, node: ast.AST) -> Iterator[ast.expr]:
        match node:
            case ast.FormattedValue(value=value) | ast.For(iter=value) | ast.Starred(value=value):
                yield value
            case ast.DictComp(generators=generators):
                yield from (one.iter for one in generators)
            case ast.Call(func=ast.Attribute(value=value, attr="pop"), args=[]):
                yield value
            case ast.Call(func=function, args=given):
                shows = self.reading.names(function) & _SHOWN
                if shows or (isinstance(function, ast.Attribute) and function.attr in _SHOWING):
                    yield from given

    def _is(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.names
            case ast.Set(elts=elements):
                return not all(isinstance(one, ast.Constant) and isinstance(one.value, int) for one in elements)
            case ast.SetComp():
                return True
            case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
                return any(self._is(one.iter) for one in generators)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.BitXor() | ast.Sub(), right=right):
                return self._is(left) or self._is(right)
            case ast.Call():
                return self._gives(node)
        return False

    def _gives(self, call: ast.Call) -> bool:
        names = self.reading.names(call.func)
        if names & _SETS:
            return True
        if names & _IN_TURN:
            return any(map(self._is, call.args))
        match call.func:
            case ast.Name(id=name):
                return f"{name}()" in self.names
            case ast.Attribute(value=value, attr=method):
                return method in _OF_SETS and self._is(value)
        return False
