"""Writes what the pages say of the code, from the code: `python docs/generate.py`. The tests see that it is up to date."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from langchain_core.stores import InMemoryByteStore

import code_chains
from code_chains.apps.terminal.cli import cli
from code_chains.chains.base import StreamingChain
from code_chains.language import LANGUAGES
from code_chains.retrieval.curated import curated_folder, known_vectors, text_key, write_vectors
from code_chains.retrieval.loaders import read_folder
from code_chains.retrieval.persistence import searched_text
from code_chains.testing import ScriptedExecutor, ScriptedModel

FOLDER = Path(__file__).parent
WIDTH = 100
VALUES_HEAD = "|---|---|---|---|---|---|---|---|---|\n"
_MODEL = ScriptedModel(lambda messages: "")


def commands(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Names and help texts of a command and of those below it."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, help_option_names=["-h", "--help"])
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from commands(found, f"{name} {below}")


def command_line() -> str:
    """Return the page of the command line."""
    parts = [
        "# Command line",
        "The answer goes to standard output, everything else to standard error. Exit codes: 0 answered,",
    ]
    parts[-1] += " 1 not answered, 2 usage error, 130 interrupted."
    parts.append((FOLDER / "cli_examples.md").read_text().strip())
    parts += [f"## {name}\n\n```text\n{text}\n```" for name, text in commands(cli, "code-chains")]
    return "\n\n".join(parts) + "\n"


def all_chains() -> list[StreamingChain]:
    """Return an instance of each chain, in processing order."""
    executor = ScriptedExecutor(lambda code: "")
    write = code_chains.chains.GenerateChain(model=_MODEL)
    attempt = code_chains.chains.AttemptChain(
        chains=[
            write,
            code_chains.chains.ValidateChain(),
            code_chains.chains.ExecuteChain(executor),
            code_chains.chains.EvaluateChain(executor=executor),
        ],
        input_variables=["query"],
        output_variables=["code", "problems", "execution", "output", "verdict"],
    )
    repair = code_chains.chains.RepairChain(attempt=attempt)
    iterate = code_chains.chains.IterateChain(
        write=write,
        validate_cell=code_chains.chains.ValidateChain(),
        execute=code_chains.chains.ExecuteChain(executor),
        evaluate=code_chains.chains.EvaluateChain(executor=executor),
        open_session=executor.session,
    )
    escalate = code_chains.chains.EscalateChain([("small", repair), ("large", repair)])
    plan = code_chains.chains.PlanChain(model=_MODEL)
    store = code_chains.SnippetStore()
    return [
        code_chains.chains.LanguageChain(),
        code_chains.chains.TranslateChain(model=_MODEL),
        code_chains.chains.RetrieveChain(store),
        code_chains.chains.ProfileChain(executor),
        write,
        code_chains.chains.ValidateChain(),
        code_chains.chains.ExecuteChain(executor),
        code_chains.chains.EvaluateChain(executor=executor),
        code_chains.chains.JudgeChain(model=_MODEL),
        code_chains.chains.AnswerabilityChain(model=_MODEL),
        code_chains.chains.WriteTestsChain(model=_MODEL),
        attempt,
        code_chains.chains.SampleChain(attempt=attempt),
        repair,
        iterate,
        escalate,
        plan,
        code_chains.chains.StepsChain(solve=repair, plan=plan, open_session=executor.session),
        code_chains.chains.InterpretChain(model=_MODEL),
        code_chains.chains.LearnChain(store=store),
        code_chains.chains.CachedChain(
            code_chains.chains.InterpretChain(model=_MODEL),
            store=InMemoryByteStore(),
            version="1",
            should_cache=bool,
        ),
    ]


def _row(chain: StreamingChain) -> str:
    name = type(chain).__name__
    if name == "CachedChain":
        cells = ["what its chain requires", "what that reads", "what that adds, `cached`"]
        return f"| [`{name}`](#code_chains.chains.{name}) | {' | '.join(cells)} |"
    keys = [chain.input_keys, chain.optional_keys, chain.output_keys]
    cells = [", ".join(f"`{key}`" for key in dict.fromkeys(one)) for one in keys]
    return f"| [`{name}`](#code_chains.chains.{name}) | {' | '.join(cells)} |"


def chain_table() -> str:
    """Return rows of a table of what each chain reads and adds."""
    return "\n".join(map(_row, all_chains()))


def with_table(page: str) -> str:
    """Return the page of the chains with an up-to-date table."""
    head = "| chain | requires | optional | adds |\n|---|---|---|---|\n"
    return re.sub(re.escape(head) + r"(?:.+\n)+", lambda _: f"{head}{chain_table()}\n", page)


def with_languages(page: str) -> str:
    """Return the page of the languages with an up-to-date list."""
    named = ", ".join(
        f"{name} (`{code}`)" for code, name in sorted(LANGUAGES.items(), key=lambda item: item[1])
    )
    return re.sub(r"- \d+ languages: .+", f"- {len(LANGUAGES)} languages: {named}.", page)


PLACES = {
    "what one stage does": "its module in `chains/`; what it tells the next one is a key of `state.py`",
    "an argument of the factory": "the value that it belongs to in `assembly/settings.py`, `solvers.py` or `verifiers.py`",
    "what is read from a model's reply": "`analysis/replies/`",
    "a check of source": "`analysis/checks/`",
    "what makes an outcome right, wrong or doubtful": "`verification/`; its words are in `data/vocabulary.json`",
    "where programs run": "`executors/`; `executors/guest/` runs beside the program, with the standard library alone",
    "a type of data file": "`profiles/inside/kinds.py`, if its first bytes tell it; text and JSON:"
    " `profiles/inside/documents.py`; whether its keys may be values: `KEYED` in `profiles/report.py`",
    "a message": "`data/languages/`: each file has all keys; `lessons` in those languages that lessons have",
    "a language": "a file in `data/languages/`, its words in `data/detection.json`, its signs in `language/detect.py`",
    "a column of a batch's results": "`COLUMNS` and `_computed` in `batch/export.py`, its type in `batch/results_file.py`",
    "a limit": "of a run `executors/limits.py`, of a question `callbacks/budget.py`, of attempts `assembly/solvers.py`",
    "exercises and grading": "`lessons/`; what a learner sees of it in `apps/`",
    "the terminal, the page, a notebook, MCP": "`apps/`",
}
"""Where a change goes."""


def package_map() -> str:
    """Return the page that names each folder and module, with the first lines of their docstrings."""
    package = FOLDER.parent / "code_chains"
    lines = [
        "# Map of the code",
        "",
        "Every folder and module with the first line of its docstring, written by `docs/generate.py`.",
        "Imports point downwards in the layers of `setup.cfg`; see [architecture](architecture.md), too.",
        "Tests are in the same folders below `tests/`; those of `profiles/` in `tests/inputs/`.",
        "",
        "| a change of | goes to |",
        "|---|---|",
        *(f"| {change} | {place} |" for change, place in PLACES.items()),
    ]
    for folder in sorted({path.parent for path in package.rglob("*.py")}):
        name = folder.relative_to(package.parent).as_posix()
        lines += ["", f"## `{name}/`", "", _first_line(folder / "__init__.py"), ""]
        modules = sorted(path for path in folder.glob("*.py") if not path.stem.startswith("__"))
        lines += [f"- `{path.stem}`: {_first_line(path)}" for path in modules]
    data = sorted(path.name for path in (package / "data").iterdir() if not path.name.startswith("_"))
    lines += ["", "## `code_chains/data/`", "", f"No modules: {', '.join(f'`{name}`' for name in data)}."]
    return "\n".join(lines).rstrip() + "\n"


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def pages() -> dict[Path, str]:
    """Return the content of the generated pages."""
    read = {name: (FOLDER / name).read_text() for name in ("chains.md", "languages.md")}
    return {
        FOLDER / "cli.md": command_line(),
        FOLDER / "map.md": package_map(),
        FOLDER / "chains.md": with_table(read["chains.md"]),
        FOLDER / "languages.md": with_languages(read["languages.md"]),
    }


def measured_pages() -> dict[Path, str]:
    """Return the content of the pages whose tables are measured, which takes a minute."""
    from tests.support import value_matrix

    page = (FOLDER / "values.md").read_text()
    head = page[: page.index(VALUES_HEAD) + len(VALUES_HEAD)]
    return {FOLDER / "values.md": head + "\n".join(value_matrix.rows()) + "\n"}


def missing_vectors() -> list[str]:
    """Return the curated snippets without a vector in the package."""
    snippets = read_folder(curated_folder())
    return [one.metadata["source"] for one in snippets if text_key(searched_text(one)) not in known_vectors()]


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent))
    for path, text in {**pages(), **measured_pages()}.items():
        path.write_text(text)
    if missing_vectors():
        write_vectors()
