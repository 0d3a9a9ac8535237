"""Whether a program may show something else the next time: it looks at a clock, draws lots, or asks the network."""

from __future__ import annotations

import re

from code_chains.calls import Use, match, read, words

__all__ = ["is_repeatable"]

_CHANGING = words(
    "time datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow datetime.date.today random numpy.random"
    " pandas.Timestamp.now pandas.Timestamp.today pandas.Timestamp.utcnow uuid.uuid1 uuid.uuid4 secrets os.urandom os.getpid"
    " os.times os.environ os.getenv tempfile builtins.id socket urllib.request http.client requests httpx aiohttp ftplib"
    " threading multiprocessing concurrent asyncio"
)
_STILL = words("time.sleep time.strptime time.mktime time.struct_time")
_SEEDS = words("random.seed numpy.random.seed")
_GENERATORS = words("random.Random numpy.random.default_rng numpy.random.RandomState")
_LOTS = words("sample shuffle")
_IN_SQL = re.compile(
    r"\b(?:now|random|current_\w+|get_current_\w+|today|uuid|gen_random_uuid|setseed|transaction_timestamp|using\s+sample"
    r"|tablesample)\b",
    re.IGNORECASE,
)


def is_repeatable(code: str) -> bool:
    """Whether a program shows the same each time, as far as reading it can tell. In doubt it does not.

    A program that seeds its random numbers with a value of its own is repeatable. Python is read by its names; anything
    else is taken for SQL.

    Example:
        >>> is_repeatable("print(sum(range(6)))"), is_repeatable("import random as r; print(r.random())")
        (True, False)
    """
    reading = read(code)
    if reading is None:
        return not _IN_SQL.search(code)
    seeds = [use for use in reading.uses if use.name in _SEEDS | _GENERATORS and _has_argument(use)]
    seeded = {use.name.removesuffix(".seed") for use in seeds}
    imported = any(
        match(found.name, _CHANGING - {"time", "random", "numpy.random", "tempfile"}) for found in reading.imports
    )
    return not imported and all(_is_still(use, seeded) for use in reading.uses)


def _is_still(use: Use, seeded: set[str]) -> bool:
    if use.name in _GENERATORS:
        return _has_argument(use)
    if any(use.name == name or use.name.startswith(f"{name}.") for name in seeded):
        return True
    if any(use.name.startswith(f"{name}.") for name in _GENERATORS):
        return True  # Made with a seed, or it is said where it was made.
    if use.last in _LOTS and use.name.startswith("?"):
        return bool(seeded) or bool(use.call and any(one.arg in ("random_state", "seed") for one in use.call.keywords))
    return use.name in _STILL or use.name in ("time", "random", "numpy.random") or not match(use.name, _CHANGING)


def _has_argument(use: Use) -> bool:
    return bool(use.call and (use.call.args or use.call.keywords))
