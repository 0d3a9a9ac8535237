"""Cells that ask: `%load_ext code_chains`, then `%%code_chain` and a question below it."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import click
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import DisplayHandle, Image, Markdown, Pretty, display
from langchain_core.callbacks import BaseCallbackHandler

from code_chains.code_chain import CodeChain
from code_chains.inputs import fenced
from code_chains.progress import DOING, explained
from code_chains.state import Execution

__all__ = ["CodeChainMagics", "Stages"]

_IMAGES = ("image/png", "image/jpeg")
"""What is shown in the page. HTML and SVG could run scripts there, and so could Markdown of a model: it is shown as text."""


@click.command("code_chain", add_help_option=False)
@click.option("-m", "--model", help="Name of a model.")
@click.option("-f", "--file", "files", multiple=True, help="A file that programs may read.")
@click.option("-v", "--variable", "variables", multiple=True, help="A variable of the notebook that programs see.")
@click.option("-s", "--session", default="notebook", show_default=True, help="Name of the conversation.")
@click.option("--into", metavar="NAME", help="Variable for the whole result.")
@click.option("--new", is_flag=True, help="Forget what was said before.")
def _options(**given: Any) -> dict[str, Any]:
    """Ask a question in a notebook.

    The next cell goes on with what this one has left: variables, imports and files of its program.
    """
    return given


class Stages(BaseCallbackHandler):
    """A callback handler that says which stage is under way.

    Args:
        shown: Where it is shown.
    """

    def __init__(self, shown: DisplayHandle) -> None:
        super().__init__()
        self._shown = shown

    def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        """A stage begins."""
        if kwargs.get("name") in DOING:
            self._shown.update(Pretty(f"{DOING[kwargs['name']]} …"))


@magics_class
class CodeChainMagics(Magics):
    """The magic `%%code_chain`: stages, program, output, figures and answer appear below the cell as they come."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._chains: dict[str, CodeChain] = {}

    @line_cell_magic
    def code_chain(self, line: str, cell: str | None = None) -> None:
        """Ask a question: that of the cell, or of the line behind the options.

        `-m MODEL`, `-f FILE`, `-v VARIABLE` of the notebook, `-s SESSION`, `--into NAME` for the result, `--new`.
        """
        given, rest = _parsed(line)
        question = f"{rest}\n{cell or ''}".strip()
        try:
            chain = self._chain(given["model"])
            if given["new"]:
                chain.forget(given["session"])
            if question or not given["new"]:
                result = _shown(chain, self._state(question, given))
                if given["into"]:
                    self._namespace[given["into"]] = result
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(explained(error)) from error

    def _state(self, question: str, given: Mapping[str, Any]) -> dict[str, Any]:
        if missing := [name for name in given["variables"] if name not in self._namespace]:
            raise UsageError(f"The notebook has no variable {missing[0]!r}.")
        files = {Path(path).name: path for path in given["files"]}
        if len(files) < len(given["files"]):
            raise UsageError("Two files have the same name.")
        return {
            "query": question,
            "session_id": given["session"],
            "files": files,
            "variables": {name: self._namespace[name] for name in given["variables"]},
        }

    @property
    def _namespace(self) -> dict[str, Any]:
        assert self.shell is not None
        return cast("dict[str, Any]", self.shell.user_ns)

    def _chain(self, model: str | None) -> CodeChain:
        """The chain for a model: what the notebook calls `code_chain`, where it has one, or made once for a name."""
        from code_chains.factory import create_code_chain
        from code_chains.models import default_model

        own = self._namespace.get("code_chain")
        if model is None and isinstance(own, CodeChain):
            return own
        name = model or default_model()
        if name not in self._chains:
            self._chains[name] = create_code_chain(name)
        return self._chains[name]


def _parsed(line: str) -> tuple[dict[str, Any], str]:
    """The options at the beginning of a line, and the rest of it as it is, quotation marks and all."""
    words, rest = [], line.strip()
    while rest.startswith("-"):
        word, _, rest = rest.partition(" ")
        words.append(word)
        if word in _WITH_A_VALUE:
            value, rest = _first(rest)
            words.append(value)
        rest = rest.strip()
    try:
        return cast("dict[str, Any]", _options.main(words, standalone_mode=False)), rest
    except click.ClickException as error:
        raise UsageError(f"{error.format_message()}\n\n{_options.get_help(click.Context(_options))}") from error


_WITH_A_VALUE = {name for option in _options.params for name in option.opts if not getattr(option, "is_flag", False)}


def _first(text: str) -> tuple[str, str]:
    """The first word, or what stands in quotes there, and the rest."""
    found = re.match(r"""\s*(?:"([^"]*)"|'([^']*)'|(\S+))""", text)
    return ("", text) if found is None else (next(filter(None, found.groups()), ""), text[found.end() :])


def _shown(chain: CodeChain, state: dict[str, Any]) -> dict[str, Any]:
    """Answer a question and show what comes; the answer grows as it is told."""
    stage, answer = DisplayHandle(), DisplayHandle()
    stage.display(Pretty("Starting …"))
    result: Any = None
    told = False
    stream = cast("Generator[Any, None, None]", chain.stream(state, {"callbacks": [Stages(stage)]}))
    try:
        with closing(stream):
            for chunk in stream:
                result = chunk if result is None else result + chunk
                if chunk.get("execution"):
                    _show_run(result["code"], chunk["execution"])
                if chunk.get("answer"):
                    (answer.update if told else answer.display)(Pretty(result["answer"]))
                    told = True
    finally:
        verdict = (result or {}).get("verdict")
        stage.update(Pretty(f"{verdict.status}: {verdict.reason}" if verdict else ""))
    return dict(result)


def _show_run(code: str, execution: Execution) -> None:
    display(Markdown(fenced(code, "python")))
    if execution.output:
        display(Pretty(execution.output))
    for artifact in execution.artifacts:
        if artifact.media_type in _IMAGES:
            display(Image(artifact.data))
        else:
            display(Pretty(f"{artifact.name} ({len(artifact.data):,} bytes)"))
