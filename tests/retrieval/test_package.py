"""References of installed packages, which are read and never imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import BaseMessage

from code_chains import SnippetStore, create_code_chain
from code_chains.chains import RetrieveChain
from code_chains.errors import InputError
from code_chains.executors import SandboxExecutor
from code_chains.retrieval.package import modules, read_package, reading
from code_chains.retrieval.references import distinct_texts
from code_chains.testing import ScriptedModel

FAKE = DeterministicFakeEmbedding(size=32)
MODULES = {
    "__init__.py": '''
"""Taxes of Acme."""
from ._core.rates import vat, Region as Region
from .invoices import *
from ._core import rates as _rates
raise RuntimeError("this package was imported")
''',
    "_core/__init__.py": "",
    "_core/rates.py": '''
from __future__ import annotations
from enum import Enum
from typing import overload

DEFAULT_RATE = 0.19
_HIDDEN = 3

class Region(Enum):
    """Where a tax is due."""
    NORTH = "n"
    SOUTH = "s"

def vat(amount: float, /, region: "Region" = Region.NORTH, *, rate: float = DEFAULT_RATE, digits: int = 2) -> float:
    """Compute the value added tax of an amount.

    More that nobody needs to know.

    Args:
        amount: The net amount.
        rate: The rate, as a fraction.

    Note:
        Slow.

    Raises:
        ValueError: The amount is negative.

    >>> vat(100)
    19.0
    """
    return round(amount * rate, 2)

def _private(): ...
def not_exported(): ...
''',
    "invoices.py": '''
import functools
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, overload
from acme_tax._core.rates import Region, vat

__all__ = ["Invoice", "Line", "parse", "fetch", "opened", "_odd", "LIMIT"]
LIMIT: int = 10_000

class _Base:
    def describe(self) -> str:
        """Describe it in a sentence."""

@dataclass(kw_only=True)
class Line:
    """A line of an invoice."""
    kind: ClassVar[int] = 1
    text: str
    price: float = 0.0
    tags: list[str] = field(default_factory=list)
    total: float = field(init=False)

class Invoice(_Base):
    """An invoice with lines."""
    def __init__(self, number: str, *lines: Line, region: Region | None = None, **more: object) -> None: ...
    def add(self, line: Line, *, times: int = 1) -> "Invoice":
        """Add a line to the invoice, once or several times."""
    @property
    def total(self) -> float:
        """The sum of all lines."""
    @classmethod
    def load(cls, path: str) -> "Invoice": ...
    @staticmethod
    def check(number: str) -> bool: ...
    def _secret(self): ...

@overload
def parse(text: str) -> Line: ...
@overload
def parse(text: list[str], strict: bool = ...) -> list[Line]: ...
def parse(text, strict=False):
    """Parse lines of text."""

async def fetch(number: str, *, timeout: float = 5.0) -> Invoice:
    """Fetch an invoice."""

@functools.lru_cache(maxsize=None)
@contextmanager
def opened(path: str):
    """Open a ledger."""
    yield

def _odd(): ...
def helper(): ...
''',
    "tests/test_it.py": "def test_it(): ...\n",
    "_vendor/other.py": "def other(): ...\n",
    "vendor/other.py": "def other(): ...\n",
    "more/test_more.py": "def tested(): ...\n",
    "more/latin.py": "# coding: latin-1\ndef latin(name='é'):\n    'Greet in Latin é.'\n",
    "more/broken.py": "def broken(:\n",
    "more/fast.pyi": "def fast(n: int) -> int: ...\n",
    "more/slow.py": "def slow(n): ...\n",
    "more/slow.pyi": "def slow(n: int) -> int: ...\n",
}


def installed(folder: Path, modules: dict[str, str], name: str = "acme_tax") -> Path:
    """Write a package as an installer does, and return the folder of packages."""
    for path, text in modules.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("latin-1" if "latin-1" in text else "utf-8"))
    info = folder / f"{name}_suite-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}-suite\nVersion: 1.0\n"
    )
    (info / "RECORD").write_text("".join(f"{name}/{path},,\n" for path in modules))
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return installed(tmp_path / "site", MODULES)


def references(name: str = "acme_tax", **kwargs: object) -> dict[str, Document]:
    return {str(one.metadata["source"]): one for one in read_package(name, **kwargs)}  # type: ignore[arg-type]


def text(name: str) -> str:
    return references()[name].page_content


# -- what is read ----------------------------------------------------------------------------------------------


def test_a_package_that_raises_when_imported_is_read(site: Path) -> None:
    assert "acme_tax.vat" in references()
    assert [name for name in sys.modules if name.startswith("acme_tax")] == []


def test_a_function_is_shown_with_all_that_a_call_needs(site: Path) -> None:
    assert text("acme_tax.vat") == (
        "from acme_tax import vat\n"
        "vat(amount: float, /, region: 'Region' = Region.NORTH, *, rate: float = DEFAULT_RATE, digits: int = 2)"
        " -> float\n"
        "    Compute the value added tax of an amount.\n"
        "    Args:\n"
        "        amount: The net amount.\n"
        "        rate: The rate, as a fraction.\n"
        "    Raises:\n"
        "        ValueError: The amount is negative.\n"
        "# From the documentation, not run:\n"
        ">>> vat(100)\n"
        "19.0\n"
        "\n"
        "from acme_tax import Region\n"
        "Region.NORTH = 'n'; Region.SOUTH = 's'\n"
        "# DEFAULT_RATE = 0.19\n"
    )


def test_the_shortest_public_name_is_imported_and_private_ones_are_left_out(site: Path) -> None:
    public = set(references())
    exported = {"vat", "Region", "Invoice", "Line", "parse", "fetch", "opened", "_odd", "LIMIT"}
    functions = {name.removeprefix("acme_tax.") for name in public if name.count(".") == 1}
    assert functions == exported
    parts = ("helper", "not_exported", "_private", "test", "vendor", "_secret", "_core")
    assert [name for name in public if any(part in name for part in parts)] == []


def test_a_class_comes_with_its_constructor_and_methods(site: Path) -> None:
    invoice = text("acme_tax.Invoice")
    assert "Invoice(number: str, *lines: Line, region: Region | None = None, **more: object)\n" in invoice
    assert (
        "invoice.add(line: Line, *, times: int = 1) -> Invoice  # Add a line to the invoice, once or"
        in invoice
    )
    assert "invoice.total -> float  # The sum of all lines." in invoice
    assert "Invoice.load(path: str) -> Invoice\n" in invoice
    assert "Invoice.check(number: str) -> bool\n" in invoice
    assert "invoice.describe() -> str  # Describe it in a sentence.\n" in invoice


def test_the_classes_in_a_signature_come_with_their_constructors(site: Path) -> None:
    line = "from acme_tax import Line\nLine(*, text: str, price: float = 0.0, tags: list[str] = list())\n"
    assert line in text("acme_tax.Invoice")
    assert line in text("acme_tax.Invoice.add")
    assert "Invoice(number: str," in text("acme_tax.Invoice.add")
    assert "Invoice(number: str," in text("acme_tax.fetch")


def test_of_a_function_with_overloads_each_is_shown(site: Path) -> None:
    parse = text("acme_tax.parse")
    assert "parse(text: str) -> Line\nparse(text: list[str], strict: bool = ...) -> list[Line]\n" in parse
    assert "Parse lines of text." in parse


def test_how_something_is_called_is_shown(site: Path) -> None:
    assert "await fetch(number: str, *, timeout: float = 5.0) -> Invoice" in text("acme_tax.fetch")
    assert "with opened(path: str)" in text("acme_tax.opened")
    assert text("acme_tax.LIMIT") == "from acme_tax import LIMIT\nLIMIT = 10000\n"


def test_a_part_of_a_package_can_be_read(site: Path) -> None:
    assert set(references("acme_tax.more.slow")) == {"acme_tax.more.slow.slow"}
    assert set(references("acme_tax.more")) == {
        f"acme_tax.more.{name}" for name in ("latin.latin", "fast.fast", "slow.slow")
    }


@pytest.mark.parametrize(
    ("source", "call"),
    [
        (
            "class P(BaseModel):\n    a: int\n    b: str = Field('x', min_length=1)\n    c: int = Field(...)",
            "a: int, b: str = 'x', c: int",
        ),
        ("class P(NamedTuple):\n    a: int\n    b: int = 2", "a: int, b: int = 2"),
        (
            "@dataclass\nclass P:\n    a: int\n    _: KW_ONLY\n    b: int = field(default=3)",
            "a: int, *, b: int = 3",
        ),
        ("@dataclass\nclass Q:\n    a: int\n\n@dataclass\nclass P(Q):\n    b: int = 1", "a: int, b: int = 1"),
        ("class P:\n    def __new__(cls, a): ...", "a"),
        ("class P(dict): ...", "…"),
        ("class P: ...", ""),
    ],
)
def test_classes_of_fields_take_their_fields(tmp_path: Path, source: str, call: str) -> None:
    installed(tmp_path, {"__init__.py": source}, "made_up")
    found = references("made_up", search_path=[tmp_path])
    assert f"\nP({call})\n" in found["made_up.P"].page_content


# -- modules that cannot be read -------------------------------------------------------------------------------


def test_a_source_comes_before_its_stub_and_a_stub_alone_is_read(site: Path) -> None:
    found = references()
    assert "fast(n: int) -> int" in found["acme_tax.more.fast.fast"].page_content
    assert "slow(n)\n" in found["acme_tax.more.slow.slow"].page_content


def test_stubs_that_are_installed_beside_a_compiled_package_are_read(tmp_path: Path) -> None:
    installed(tmp_path, {"_speed.so": ""}, "compiled")
    with pytest.raises(InputError, match="no source"):
        read_package("compiled", [tmp_path])
    installed(tmp_path, {"__init__.pyi": "def speed(n: int) -> int: ..."}, "compiled-stubs")
    assert "compiled.speed" in references("compiled", search_path=[tmp_path])


def test_a_module_that_is_no_python_is_skipped_with_a_warning(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert "é" in text("acme_tax.more.latin.latin")
    assert "'acme_tax.more.broken' is skipped: it is not Python" in caplog.text


def test_what_is_huge_is_skipped_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    installed(
        tmp_path,
        {"__init__.py": "def f(): ...\ndef g(): ...", "huge.py": f"#{' ' * 1_000_000}", "z.py": ""},
        "big",
    )
    monkeypatch.setattr(reading, "MAX_DEFINITIONS", 1)
    monkeypatch.setattr(modules, "MAX_MODULES", 2)
    assert set(references("big", search_path=[tmp_path])) == {"big.f"}
    monkeypatch.setattr(modules, "MAX_PACKAGE_BYTES", 10)
    with pytest.raises(InputError, match="no source"):
        read_package("big", [tmp_path])
    for words in (
        "'big.huge' is skipped: it is larger",
        "the first 1 definitions",
        "the first 2 are read",
        "the package is larger",
    ):
        assert words in caplog.text


def test_a_module_of_one_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "single.py").write_text("def one(a): ...")
    assert set(references("single", search_path=[tmp_path])) == {"single.one"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_package", "not installed"),
        ("acme_tax.nothing", "no part"),
        ("acme-tax-suite", "installs 'acme_tax'"),
        ("sys", "no source"),
        ("", "not a name"),
        ("empty_space", "no source"),
        ("hidden", "nothing that is public"),
    ],
)
def test_a_package_that_cannot_be_read_is_an_input_error(site: Path, name: str, words: str) -> None:
    (site / "empty_space").mkdir()
    (site / "hidden.py").write_text("def _f(): ...")
    with pytest.raises(InputError, match=words):
        read_package(name)


def test_circular_imports_and_bases_end(tmp_path: Path) -> None:
    stars = "".join(f"from .s{number} import *\n" for number in range(8)) + "from . import *\n"
    modules = {f"s{number}/__init__.py": stars.replace("from .", "from ..") for number in range(8)}
    modules |= {
        "__init__.py": f"from .a import x, C\n{stars}",
        "a.py": "from . import x\nfrom .b import *\nclass C(D): ...",
        "b.py": "from .a import *\nclass D(C): ...",
        "s0/end.py": "def end(): ...",
    }
    installed(tmp_path, modules, "loop")
    assert {"loop.C", "loop.s0.end.end"} <= set(references("loop", search_path=[tmp_path]))


def test_what_is_nested_without_end_is_read_or_skipped(tmp_path: Path) -> None:
    branches = "if a == 0: pass\n" + "".join(f"elif a == {number}: pass\n" for number in range(1, 1500))
    sums = "__all__ = ['f']" + " + ['f']" * 1500
    modules = {
        "__init__.py": "def f(): ...",
        "b.py": f"{branches}\ndef g(): ...",
        "s.py": f"{sums}\ndef f(): ...",
    }
    decorated = f"@a{'()' * 1500}\ndef h(): ..."
    installed(tmp_path, {**modules, "d.py": decorated, "o.py": f"x = {'(' * 500}1{')' * 500}"}, "deep")
    assert "deep.f" in references("deep", search_path=[tmp_path])


def test_lists_of_names_that_name_each_other_end(tmp_path: Path) -> None:
    names = "".join(f"from . import m{number}\n__all__ += m{number}.__all__\n" for number in range(40))
    modules = {
        f"m{number}.py": f"__all__ = ['f{number}']\n{names}\ndef f{number}(): ..." for number in range(40)
    }
    installed(tmp_path, {"__init__.py": "", **modules}, "mutual")
    assert {"mutual.m0.f0", "mutual.m39.f39"} <= set(references("mutual", search_path=[tmp_path]))


def test_names_are_exported_from_lists_of_other_modules(tmp_path: Path) -> None:
    modules = {
        "__init__.py": "from . import _a\nfrom ._a import *\n__all__ = ['g']\n__all__ += _a.__all__\ndef g(): ...",
        "_a.py": "__all__ = ('f',)\ndef f(): ...\ndef hidden(): ...",
        "called.py": "from ._a import f\n__all__ = sorted(dir())\ndef h(): ...",
    }
    installed(tmp_path, modules, "listed")
    assert set(references("listed", search_path=[tmp_path])) == {"listed.f", "listed.g", "listed.called.h"}


def test_what_is_defined_counts_more_than_what_may_be_imported_in_its_place(tmp_path: Path) -> None:
    source = "def push(heap): ...\ntry:\n    from _fast import push\nexcept ImportError:\n    pass\npush = traced(push)\n"
    stub = "from typing import overload\n@overload\ndef pop(n: int) -> int: ...\n@overload\ndef pop(n: str) -> str: ..."
    installed(tmp_path, {"__init__.py": source, "one.pyi": stub, "two.py": "A, B = 1, 2\nC = 3"}, "heaps")
    found = references("heaps", search_path=[tmp_path])
    assert set(found) == {"heaps.push", "heaps.one.pop", "heaps.two.C"}
    assert "pop(n: int) -> int\npop(n: str) -> str\n" in found["heaps.one.pop"].page_content


def test_a_default_steers_no_terminal(tmp_path: Path) -> None:
    installed(tmp_path, {"__init__.py": "def f(a=f'\\x1b[2J{1}', b='\\x1b'): 'Say.'"}, "loud")
    found = references("loud", search_path=[tmp_path])["loud.f"]
    assert "\x1b" not in found.page_content + str(list(found.metadata.values()))


@pytest.mark.slow
def test_nothing_that_reads_packages_is_loaded_before_one_is_read() -> None:
    code = "import sys; from code_chains import SnippetStore; print('griffe' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# -- how it is found and shown ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What does `vat` add to 80?", "acme_tax.vat"),
        ("Use Invoice.add twice", "acme_tax.Invoice.add"),
        ("Is acme_tax.parse strict?", "acme_tax.parse"),
        ("fetch('A1') and what then?", "acme_tax.fetch"),
    ],
)
def test_what_a_question_names_comes_first_whatever_its_score(site: Path, query: str, first: str) -> None:
    store = SnippetStore.from_package("acme_tax", FAKE)
    found = store.similarity_search(query, k=3, score_threshold=2.0)
    assert found[0].metadata["source"] == first


def test_what_has_the_name_in_its_signature_comes_before_what_is_near(site: Path) -> None:
    store = SnippetStore.from_package("acme_tax", FAKE)
    found = store.similarity_search("Which functions take the DEFAULT_RATE?", k=3)
    assert found[0].metadata["source"] == "acme_tax.vat"


def test_a_name_is_found_after_changes_and_among_what_passes_a_filter(site: Path) -> None:
    store = SnippetStore.from_package("acme_tax", FAKE)
    assert (
        store.similarity_search("`vat`", k=9, filter={"source": "acme_tax.LIMIT"})[0].metadata["source"]
        == "acme_tax.LIMIT"
    )
    store.delete(["acme_tax.vat#vat"])
    assert store.similarity_search("`vat`", k=9, score_threshold=2.0) == []


def test_a_saved_store_knows_its_references(site: Path, tmp_path: Path) -> None:
    SnippetStore.from_package("acme_tax", FAKE).save(tmp_path / "store")
    loaded = SnippetStore.load(tmp_path / "store", FAKE)
    context = RetrieveChain(loaded).invoke({"query": "`vat` of 80"})["context"]
    assert context.startswith("Functions that are installed. ")
    assert "\n```text\nfrom acme_tax import " in context
    assert "\nfrom acme_tax import vat\nvat(" in context


def test_several_references_are_shown_beside_the_examples(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.chains.retrieve.MAX_PACKAGE_CHARS", 100)
    store = SnippetStore.from_package("acme_tax", FAKE)
    store.add_texts(
        [f"print({number})" for number in range(5)], [{"about": f"Print {number}."} for number in range(5)]
    )
    result = RetrieveChain(store, k=1).invoke({"query": "`vat`, `parse` and `fetch`: print"})
    names = [source.name.rpartition(".")[2] for source in result["sources"]]
    assert {"vat", "parse", "fetch"} == set(names[-3:])
    assert result["context"].count("Task: ") <= 1


def test_a_small_package_is_shown_as_a_whole_and_always_in_the_same_order(site: Path) -> None:
    store = SnippetStore.from_package("acme_tax", FAKE)
    first, second = (RetrieveChain(store).invoke({"query": query}) for query in ("`vat` of 80", "`parse` it"))
    assert first["context"] == second["context"]
    assert len(first["sources"]) == len(store)


def test_a_question_for_which_nothing_is_found_is_shown_nothing_of_a_package(site: Path) -> None:
    store = SnippetStore.from_package("acme_tax", FAKE)
    assert RetrieveChain(store, min_score=1.0).invoke({"query": "How old is the moon?"})["sources"] == ()


def test_a_class_is_shown_once_however_many_functions_take_it() -> None:
    line = "from a import C\nC(n: int)"
    texts = [f"from a import f\nf(x: C)\n\n{line}", f"from a import g\ng(x: C)\n\n{line}"]
    shown = distinct_texts([Document(text) for text in texts])
    assert shown == [texts[0], "from a import g\ng(x: C)"]
    assert distinct_texts([Document(f"{texts[0]}\n\n{line}")]) == [texts[0]]


HARBOUR = '''
from __future__ import annotations
from enum import Enum
from typing import Self

class Depth(Enum):
    SHALLOW = "s"
    DEEP = "d"

class Quay:
    def __init__(self, depth: Depth) -> None: ...
    def berths(self) -> list[Berth]: ...

class Berth:
    def __init__(self, quay: Quay, number: int) -> None: ...
    def moved(self, number: int) -> Berth: ...
    @classmethod
    def parse(cls, tag: str) -> Self: ...

def find_berth_by_its_name(name: str, fuzzy: bool = False) -> Berth | None: ...
def nearest(berth: Berth) -> Berth: ...
def dues(berths: list[Berth], hours: int) -> Bill: ...
def old_dues(berth, hours):
    """Charge.

    Args:
        berth (Berth): Where.
        hours: How long.
    """
class Bill:
    def __init__(self, euros: float) -> None: ...
'''
CONNECTED = """
from harbour import Berth
Berth(quay: Quay, number: int)
Berth.parse(tag: str) -> Self

from harbour import Quay
quay.berths() -> list[Berth]

from harbour import Quay
Quay(depth: Depth)

from harbour import Depth
Depth.SHALLOW = 's'; Depth.DEEP = 'd'
"""


@pytest.mark.parametrize(
    ("name", "result"), [("dues", "\nfrom harbour import Bill\nBill(euros: float)\n"), ("old_dues", "")]
)
def test_what_is_needed_for_an_argument_is_shown_with_what_makes_it(
    tmp_path: Path, name: str, result: str
) -> None:
    """Down to what its constructor takes; whether annotations or the docstring say so. The longest maker is left out."""
    (tmp_path / "harbour.py").write_text(HARBOUR)
    shown = references("harbour", search_path=[tmp_path])[f"harbour.{name}"].page_content
    assert shown.endswith(CONNECTED + result)


@pytest.mark.parametrize(
    "doc",
    [
        "Args:\n    quay (Quay): Where.\n\nReturns:\n    Berth: The first.",
        "Parameters\n----------\nquay : Quay\n    Where.\n\nReturns\n-------\nBerth\n    The first.",
        ":param quay: Where.\n:type quay: Quay\n:returns: The first.\n:rtype: Berth",
    ],
)
def test_types_in_docstrings_of_any_style_connect(tmp_path: Path, doc: str) -> None:
    source = "class Quay: ...\nclass Berth: ...\ndef take(berth: Berth): ...\n"
    (tmp_path / "port.py").write_text(
        f'{source}def first(quay):\n    """Find.\n\n{indent(doc, "    ")}\n    """\n'
    )
    found = references("port", search_path=[tmp_path])
    assert "from port import Quay\nQuay()" in found["port.first"].page_content
    assert "from port import first\nfirst(quay)" in found["port.take"].page_content


def test_what_a_class_says_of_a_method_is_not_said_again(site: Path) -> None:
    found = references()
    shown = distinct_texts(
        [found["acme_tax.Invoice"], found["acme_tax.Invoice.add"], found["acme_tax.Invoice.describe"]]
    )
    assert "\n".join(shown).count("Invoice(number: str") == 1
    assert "\n".join(shown).count("Describe it in a sentence.") == 1


def test_options_that_the_question_names_are_said_after_the_functions(site: Path) -> None:
    store = SnippetStore.from_package("acme_tax", FAKE)
    contexts = [
        RetrieveChain(store).invoke({"query": query})["context"]
        for query in ("`vat` in the south, rounded to three digits?", "`vat`")
    ]
    assert contexts[0].startswith(contexts[1])
    said = "region: Region.NORTH | Region.SOUTH (default Region.NORTH), of vat\ndigits: int (default 2), of vat\n"
    assert said in contexts[0]


def test_a_program_calls_the_function_that_its_model_was_shown(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    packages = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    modules = {**MODULES, "__init__.py": "from ._core.rates import vat, Region"}
    installed(packages, modules)
    seen: list[BaseMessage] = []

    def write(messages: list[BaseMessage]) -> str:
        seen.extend(messages)
        return "```python\nfrom acme_tax import vat\nprint('Tax:', vat(80, rate=0.19))\n```"

    store = SnippetStore.from_package("acme_tax", FAKE, search_path=[packages])
    with (
        SandboxExecutor(
            python=str(tmp_path / "venv/bin/python"), packages=["acme_tax"], preload=()
        ) as sandbox,
        create_code_chain(ScriptedModel(write), executor=sandbox, snippets=store, interpret=False) as chain,
    ):
        result = chain.invoke({"query": "What does `vat` add to 80?"})
    assert "vat(amount: float, /, region: 'Region' = Region.NORTH, *," in seen[-1].text
    assert result["output"] == "Tax: 15.2"
    assert result["verdict"].status != "failed"  # A default is no value of another task.


def test_links_out_of_a_package_are_not_followed(site: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "__init__.py").write_text("")
    (secret / "keys.py").write_text('def leaked(): "A secret."\n')
    package = next(path for path in site.iterdir() if (path / "__init__.py").exists())
    (package / "linked.py").symlink_to(secret / "keys.py")
    (package / "folder").symlink_to(secret, target_is_directory=True)
    (package / "inner.py").symlink_to("invoices.py")
    texts = "\n".join(document.page_content for document in read_package(package.name, [site]))
    assert "leaked" not in texts
    with pytest.raises(InputError):
        read_package(f"{package.name}.folder", [site])


def test_a_docstring_steers_no_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "loud"
    folder.mkdir()
    (folder / "__init__.py").write_text('def shout():\n    "Shout \\x1b[2J loudly."\n')
    texts = "\n".join(document.page_content for document in read_package("loud", [tmp_path]))
    assert ("Shout" in texts, "\x1b" in texts) == (True, False)


def write_package(folder: Path, modules: dict[str, str]) -> list[Document]:
    """Write a package and return its references."""
    (folder / "small").mkdir()
    for name, source in modules.items():
        (folder / "small" / name).write_text(source)
    return read_package("small", [folder])


def test_definitions_have_the_names_that_programs_import(tmp_path: Path) -> None:
    core = "from enum import Enum\nclass Region(Enum):\n    DE = 1\ndef make(where: Region = Region.DE) -> Region: ...\n"
    exports = "from ._core import make as build, Region as Zone\n"
    zone, build = write_package(tmp_path, {"__init__.py": exports, "_core.py": core})
    assert zone.page_content.splitlines() == ["from small import Zone", "Zone.DE = 1"]
    assert "build(where: Zone = Zone.DE)" in build.page_content


CORE = 'def go(n: int) -> int:\n    """Go on."""\n    return n\n'
STUBS = {
    "names found when they are used": {
        "__init__.py": "import lazy_loader\n__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)\n",
        "__init__.pyi": "from ._core import go as go\n__all__ = ['go']\n",
        "_core.py": CORE,
    },
    "no more than a docstring": {"__init__.py": '"""Words."""\n', "__init__.pyi": CORE},
    "no source": {"__init__.pyi": CORE},
    "one function of two": {"__init__.py": "def other(): ...\n", "__init__.pyi": CORE},
}


@pytest.mark.parametrize("case", STUBS)
def test_a_stub_declares_what_the_source_does_not_define(tmp_path: Path, case: str) -> None:
    assert "from small import go\ngo(n: int) -> int" in write_package(tmp_path, STUBS[case])[0].page_content
