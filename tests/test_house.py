"""The house as a whole: what it shows, what it imports, and that its layers hold."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import code_chains

from .conftest import ROOT

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(code_chains.__path__, "code_chains.")
    if not module.name.endswith("__main__")
)


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", code_chains.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(code_chains, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        code_chains.no_such_name  # noqa: B018


@pytest.mark.parametrize("module", ["code_chains", "code_chains.cli"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    heavy = {"langchain_core", "langchain_classic", "langchain_openai", "openai", "faiss", "numpy", "pydantic", "rich"}
    loaded = python(f"import sys, {module}; print(*sys.modules)").split()
    assert heavy & set(loaded) == set()


def test_no_graph_runtime_is_loaded_by_anything() -> None:
    code = (
        f"import sys, importlib\nfor name in {MODULES}: importlib.import_module(name)\n"
        "from code_chains import create_code_chain\nfrom code_chains.testing import ScriptedModel\n"
        "from code_chains.models import resolve_model\nresolve_model('x', base_url='http://127.0.0.1:1')\n"
        "with create_code_chain(ScriptedModel(lambda messages: 'print(1)')) as chain: chain.invoke('?')\n"
        "print([name for name in sys.modules if 'langgraph' in name])"
    )
    assert python(code).strip() == "[]"


def test_the_package_warns_of_nothing_when_imported() -> None:
    python(
        f"import warnings, importlib; warnings.simplefilter('error')\nfor n in {MODULES}: importlib.import_module(n)"
    )


def test_the_layers_hold() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("path", sorted((ROOT / "code_chains").rglob("*.py")), ids=lambda path: path.stem)
def test_no_pickle_and_no_unsafe_loading(path: Path) -> None:
    imported = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in ([ast.alias(node.module or "")] if isinstance(node, ast.ImportFrom) else node.names)
    }
    assert imported & {"pickle", "marshal", "shelve", "dill", "cloudpickle"} == set()
