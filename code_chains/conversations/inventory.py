"""What programs of a conversation left in its session, described for a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import suppress

from code_chains.errors import CodeChainsError
from code_chains.executors.base import Session, discard
from code_chains.state import Execution, Turn

_INVENTORY = """
def _describe(names):
    import types
    for _name, _value in list(globals().items()):
        if _name.startswith("_") or isinstance(_value, types.ModuleType):
            continue
        _kind = type(_value).__name__
        if names is not None:
            if _name in names:
                _library = type(_value).__module__.partition(".")[0]
                _known = _library in ("builtins", "numpy", "pandas", "polars", "pyarrow", "datetime", "decimal")
                print(f"- variable `{_name}`" + (f": {_kind}" if _known else ""))
            continue
        if isinstance(_value, (types.FunctionType, type)):
            if _value.__module__ == "tools":
                continue
            print(f"- {'class' if isinstance(_value, type) else 'function'} `{_name}`")
        elif hasattr(type(_value), "columns") and hasattr(type(_value), "shape"):
            _columns = ", ".join(f"`{_one}`" for _one in list(_value.columns)[:40])
            print(f"- variable `{_name}`: {_kind}, {_value.shape[0]} rows, columns {_columns}"[:1500])
        elif hasattr(type(_value), "shape") and hasattr(type(_value), "dtype"):
            print(f"- variable `{_name}`: {_kind} of {_value.dtype}, shape {_value.shape}"[:300])
        else:
            try:
                _shown = repr(_value) if not hasattr(_value, "__len__") or len(_value) <= 1000 else f"{len(_value)} items"
            except Exception:
                _shown = ""
            print(f"- variable `{_name}`: {_kind}, {_shown[:80]}")
    import os
    for _name in sorted(os.listdir("."))[:20]:
        if os.path.isfile(_name) and (names is None or _name in names):
            _begin = ""
            if _name.lower().endswith((".csv", ".tsv")) and names is None:
                with open(_name, errors="replace") as _file:
                    _begin = f", begins with the line `{_file.readline().strip()[:300]}`"
            print(f"- file `{_name}` in the working directory{_begin}")
"""


def inventory(session: Session, *, names: Collection[str] | None = None) -> str:
    """Describe a session for a model: its variables and files. The state is unchanged.

    Args:
        session: The session.
        names: Report only these names, with their types; a program may have made others from
            values of the data, as columns and files. None for all, with their values.
    """
    with suppress(CodeChainsError):  # The next run reports a session that broke.
        return _format_inventory(session.run(_inventory_code(names), check=discard))
    return ""


async def ainventory(session: Session, *, names: Collection[str] | None = None) -> str:
    """Like `inventory`, without blocking the event loop."""
    with suppress(CodeChainsError):
        return _format_inventory(await session.arun(_inventory_code(names), check=discard))
    return ""


def _inventory_code(names: Collection[str] | None) -> str:
    return f"{_INVENTORY}_describe({None if names is None else sorted(names)!r})\n"


def names_in(turns: Iterable[Turn]) -> set[str]:
    """Return the names of variables and files that programs and inputs of turns spell out."""
    names = set[str]()
    for turn in turns:
        names |= {*turn.variables, *turn.files, *re.findall(r"[\w.-]+", turn.code)}
    return names


def _format_inventory(execution: Execution) -> str:
    return execution.stdout[:6000].strip()
