"""Determinism: whether a program may print something else the next time, because of clocks, randomness or the network."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from code_chains.analysis.references import Reading, Use, match, read, words

_NONDETERMINISTIC = words(
    "time datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow datetime.date.today random numpy.random"
    " pandas.Timestamp.now pandas.Timestamp.today pandas.Timestamp.utcnow uuid.uuid1 uuid.uuid4 secrets os.urandom os.getpid"
    " os.times os.environ os.getenv tempfile builtins.id builtins.hash socket urllib.request http.client requests httpx"
    " aiohttp ftplib threading multiprocessing concurrent asyncio subprocess os.popen os.system os.getrandom os.getppid"
    " os.getloadavg os.path.getmtime os.path.getctime os.path.getatime email.utils.localtime email.utils.formatdate"
    " email.utils.make_msgid timeit cProfile profile psutil tracemalloc resource dateparser"
)
_DETERMINISTIC = words("time.sleep time.strptime time.mktime time.struct_time")
_SEEDS = words("random.seed numpy.random.seed")
_GENERATORS = words("random.Random numpy.random.default_rng numpy.random.RandomState")
_RANDOM_METHODS = words(
    "sample shuffle rvs bootstrap permutation_test monte_carlo_test differential_evolution dual_annealing basinhopping"
)
_LEARNING = words("torch tensorflow keras jax faker")
_ML_SEEDS = words("manual_seed set_seed set_random_seed seed seed_instance seed_everything PRNGKey key")
_SEED_ARGUMENTS = words("random_state seed rng")
_DETERMINISTIC_SKLEARN = words(
    "sklearn.metrics sklearn.preprocessing sklearn.pipeline sklearn.compose sklearn.impute sklearn.feature_extraction"
    " sklearn.naive_bayes sklearn.neighbors sklearn.base sklearn.linear_model.LinearRegression sklearn.linear_model.Ridge"
    " sklearn.linear_model.Lasso sklearn.linear_model.ElasticNet sklearn.linear_model.LogisticRegression"
    " sklearn.datasets.load_iris sklearn.datasets.load_wine sklearn.datasets.load_digits sklearn.datasets.load_diabetes"
    " sklearn.datasets.load_breast_cancer sklearn.model_selection.cross_val_score sklearn.cluster.DBSCAN"
    " sklearn.model_selection.cross_validate sklearn.model_selection.cross_val_predict sklearn.svm.SVR"
    " sklearn.cluster.AgglomerativeClustering"
)
_ADDRESS = r"(?:https?|ftps?|s3|gs|hf)://"
_NONDETERMINISTIC_SQL = re.compile(
    r"\b(?:now|random|randomblob|rand|current_\w+|get_current_\w+|today|uuid\w*|gen_random_uuid|setseed|using\s+sample"
    r"|(?:transaction|clock|statement)_timestamp|localtime|localtimestamp|sysdate|getdate|tablesample|getenv"
    rf"|age\s*\(|(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)|{_ADDRESS})",
    re.IGNORECASE,
)
_SQL = re.compile(r"\s*(?:select|with|insert|create|update|replace|values|from)\b", re.IGNORECASE)
_REMOTE = re.compile(_ADDRESS, re.IGNORECASE)
_CLOCKS = words("now today")
_DEVICES = ("/dev/urandom", "/dev/random", "/proc/")
_READERS = re.compile(
    r"(?:read|scan|load|fetch|open|urlopen|urlretrieve|connect|imread|genfromtxt|execute|sql|query)"
)
_STABLE_STAT_FIELDS = words("st_size st_mode")
_STAT_METHODS = words("stat lstat")
_SET_TYPES = words("builtins.set builtins.frozenset builtins.object")
_ITERATING = words(
    "builtins.list builtins.tuple builtins.enumerate builtins.iter builtins.map builtins.zip builtins.filter"
)
_SET_METHODS = words("union intersection difference symmetric_difference copy")
_PRINTING = words(
    "builtins.print builtins.str builtins.repr builtins.format builtins.next pprint.pprint pprint.pformat json.dumps"
    " pandas.DataFrame pandas.Series numpy.array builtins.dict builtins.dict.fromkeys collections.Counter"
)
_PRINTING_METHODS = words("join format write")


def is_repeatable(code: str) -> bool:
    """Return whether a program shows the same each time, as far as its source tells. When in doubt, it does not.

    A program that seeds its random numbers with a value of its own, before it draws any, is repeatable.
    Python is read by its names and texts; anything else is taken for SQL.

    Example:
        >>> is_repeatable("print(sum(range(6)))"), is_repeatable("import random as r; print(r.random())")
        (True, False)
    """
    reading = read(code)
    if reading is None:
        return not _NONDETERMINISTIC_SQL.search(code)
    imported = any(
        match(module.name, _NONDETERMINISTIC - {"time", "random", "numpy.random", "tempfile"})
        for module in reading.imports
    )
    if imported or not _is_seeded(reading) or _reads_environment(reading):
        return False
    try:
        return (
            _Randomness(reading).is_deterministic()
            and not _reads_file_times(reading)
            and not _UnorderedValues(reading).is_printed()
        )
    except RecursionError:  # An expression of thousands of operators: unknown.
        return False


def prints_set_order(code: str) -> bool:
    """Return whether a program prints the elements of a set in their arbitrary order.

    Example:
        >>> prints_set_order("print(list(set('banana')))"), prints_set_order("print(sorted(set('banana')))")
        (True, False)
    """
    if not any(sign in code for sign in ("set", "{", "object")):
        return False
    reading = read(code)
    return reading is not None and _UnorderedValues(reading).is_shown()


class _Randomness:
    """The names that a program uses, and where it seeds random numbers."""

    def __init__(self, reading: Reading) -> None:
        self.uses = reading.uses
        self.pandas = any(match(module.name, {"pandas"}) for module in reading.imports)
        self.seeds = [use for use in reading.uses if use.name in _SEEDS | _GENERATORS and _has_argument(use)]

    def is_deterministic(self) -> bool:
        """Return whether none of its names is random or depends on time."""
        return all(self._is_deterministic(use) for use in self.uses)

    def _is_deterministic(self, use: Use) -> bool:
        name = use.name
        if name in _GENERATORS:
            return _has_argument(use)
        if any(name.startswith(f"{item}.") for item in _GENERATORS):
            return True  # Made with a seed, or it is said where it was made.
        if name in _SEEDS:
            return _has_argument(use) or not use.call
        if use.last in _RANDOM_METHODS and name.startswith(("?", "scipy.", "sklearn.")):
            return not use.call or self._has_seed_argument(use)
        if name.startswith("sklearn.") and use.call and not match(name, _DETERMINISTIC_SKLEARN):
            return self._has_seed_argument(use)
        return (
            name in _DETERMINISTIC
            or name in ("time", "random", "numpy.random")
            or self._is_seeded_or_fixed(use)
        )

    def _is_seeded_or_fixed(self, use: Use) -> bool:
        module = match(use.name, {"random", "numpy.random"})
        if module and "SystemRandom" not in use.name:
            return any(
                seed.name == f"{module}.seed" and _position(seed) <= _position(use) for seed in self.seeds
            )
        return not match(use.name, _NONDETERMINISTIC)

    def _has_seed_argument(self, use: Use) -> bool:
        states = [item.value for item in use.call.keywords if item.arg in _SEED_ARGUMENTS] if use.call else []
        if states:
            return not any(isinstance(state, ast.Constant) and state.value is None for state in states)
        needs_numpy = self.pandas or not use.name.startswith("?")
        return any(
            _position(seed) < _position(use) and (not needs_numpy or seed.name == "numpy.random.seed")
            for seed in self.seeds
        )


def _position(use: Use) -> tuple[int, int]:
    return use.line, use.call.col_offset if use.call else 0


def _has_argument(use: Use) -> bool:
    arguments = [*use.call.args, *(item.value for item in use.call.keywords)] if use.call else []
    return bool(arguments) and not (isinstance(arguments[0], ast.Constant) and arguments[0].value is None)


def _is_seeded(reading: Reading) -> bool:
    """Return whether libraries that learn or generate data are seeded, if there are any."""
    if not any(match(module.name, _LEARNING) for module in reading.imports):
        return True
    return any(use.last in _ML_SEEDS and _has_argument(use) for use in reading.uses)


def _strings(reading: Reading) -> Iterator[str]:
    for node in reading.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))


def _reads_environment(reading: Reading) -> bool:
    """Return whether a string names a clock, a device or an address, or SQL does."""
    texts = list(_strings(reading))
    if any(text.strip().lower() in _CLOCKS or text.startswith(_DEVICES) for text in texts):
        return True
    if any(_SQL.match(text) and _NONDETERMINISTIC_SQL.search(text) for text in texts):
        return True
    return any(map(_REMOTE.match, texts)) and any(
        _READERS.match(use.last) for use in reading.uses if use.call
    )


def _reads_file_times(reading: Reading) -> bool:
    """Return whether it reads more of a file's metadata than its size."""
    still = {
        id(node.value)
        for node in reading.nodes
        if isinstance(node, ast.Attribute) and node.attr in _STABLE_STAT_FIELDS
    }
    return any(use.call and use.last in _STAT_METHODS and id(use.call) not in still for use in reading.uses)


class _UnorderedValues:
    """Values whose order differs between processes: sets, above all of strings; addresses, too."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.names: set[str] = set()
        assigned = [pair for node in reading.nodes for pair in _assigned(node)]
        sorted_later = {
            node.func.value.id
            for node in reading.nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr == "sort"
        }
        for _ in range(3):  # What is named after what is named after a set.
            self.names |= {name for name, value in assigned if self._is_unordered(value)} - sorted_later

    def is_printed(self) -> bool:
        """Return whether any of it is printed, joined or iterated over."""
        return self.is_shown() or any(
            self._is_unordered(value) for node in self.reading.nodes for value in self._iterated(node)
        )

    def is_shown(self) -> bool:
        """Return whether any of it is printed or joined."""
        return any(
            self._is_unordered(printed) for node in self.reading.nodes for printed in self._printed(node)
        )

    def _iterated(self, node: ast.AST) -> Iterator[ast.expr]:
        match node:
            case ast.For(iter=value) | ast.Call(func=ast.Attribute(value=value, attr="pop"), args=[]):
                yield value
            case ast.DictComp(generators=generators):
                yield from (item.iter for item in generators)

    def _printed(self, node: ast.AST) -> Iterator[ast.expr]:
        match node:
            case ast.FormattedValue(value=value) | ast.Starred(value=value):
                yield value
            case ast.Call(func=function, args=arguments):
                shows = self.reading.names(function) & _PRINTING
                if shows or (isinstance(function, ast.Attribute) and function.attr in _PRINTING_METHODS):
                    yield from arguments

    def _is_unordered(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.names
            case ast.Set(elts=elements):
                return not all(
                    isinstance(item, ast.Constant) and isinstance(item.value, int) for item in elements
                )
            case ast.SetComp():
                return True
            case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
                return any(self._is_unordered(item.iter) for item in generators)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.BitXor() | ast.Sub(), right=right):
                return self._is_unordered(left) or self._is_unordered(right)
            case ast.Call():
                return self._returns_unordered(node)
        return False

    def _returns_unordered(self, call: ast.Call) -> bool:
        names = self.reading.names(call.func)
        if names & _SET_TYPES:
            return True
        if names & _ITERATING:
            return any(map(self._is_unordered, call.args))
        match call.func:
            case ast.Name(id=name):
                return f"{name}()" in self.names
            case ast.Attribute(value=value, attr=method):
                return method in _SET_METHODS and self._is_unordered(value)
        return False


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield names with what is assigned to them, and `name()` with what a function returns."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.FunctionDef(name=name):
            for item in ast.walk(node):
                if isinstance(item, ast.Return) and item.value:
                    yield f"{name}()", item.value
