"""Notebook cells with questions: `%load_ext code_chains`, then `%%code_chain` and a question below it."""

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

from code_chains.apps.progress import STAGE_LABELS
from code_chains.callbacks.redaction import describe_error, printable, strip_control_chars
from code_chains.code_chain import CodeChain
from code_chains.inputs import fenced
from code_chains.state import Execution

__all__ = ["CodeChainMagics", "StageDisplay"]

_IMAGES = ("image/png", "image/jpeg")
"""Media types that are displayed.

HTML, SVG and Markdown of a model could run scripts, so they are not rendered.
"""


@click.command("code_chain", add_help_option=False)
@click.option("-m", "--model", help="Name of a model.")
@click.option("-f", "--file", "files", multiple=True, help="A file that programs may read.")
@click.option(
    "-v", "--variable", "variables", multiple=True, help="A variable of the notebook to pass to programs."
)
@click.option("-s", "--session", default="notebook", show_default=True, help="Name of the conversation.")
@click.option("--into", metavar="NAME", help="Variable for the whole result.")
@click.option("--new", is_flag=True, help="Start a new conversation.")
def _options(**options: Any) -> dict[str, Any]:
    """Ask a question in a notebook.

    The next cell continues with the state of this one: variables, imports and files of its program.
    """
    return options


class StageDisplay(BaseCallbackHandler):
    """A callback handler that displays the current stage.

    Args:
        handle: The display to update.
    """

    def __init__(self, handle: DisplayHandle) -> None:
        super().__init__()
        self._handle = handle

    def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        """Display the current stage."""
        if kwargs.get("name") in STAGE_LABELS:
            self._handle.update(Pretty(f"{STAGE_LABELS[kwargs['name']]} …"))


@magics_class
class CodeChainMagics(Magics):
    """The magic `%%code_chain`: stages, program, output, figures and answer are displayed below the cell as they arrive."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._chains: dict[str, CodeChain] = {}

    @line_cell_magic
    def code_chain(self, line: str, cell: str | None = None) -> None:
        """Ask the question in the cell, or in the line after the options.

        `-m MODEL`, `-f FILE`, `-v VARIABLE` of the notebook, `-s SESSION`, `--into NAME` for the result,
        `--new`.
        """
        options, rest = _parse_options(line)
        question = f"{rest}\n{cell or ''}".strip()
        try:
            chain = self._chain(options["model"])
            if options["new"]:
                chain.forget(options["session"])
            if question or not options["new"]:
                result = _display_answer(chain, self._state(question, options))
                if options["into"]:
                    self._namespace[options["into"]] = result
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(describe_error(error)) from error

    def _state(self, question: str, options: Mapping[str, Any]) -> dict[str, Any]:
        if missing := [name for name in options["variables"] if name not in self._namespace]:
            raise UsageError(f"The notebook has no variable {missing[0]!r}.")
        files = {Path(path).name: path for path in options["files"]}
        if len(files) < len(options["files"]):
            raise UsageError("Two files have the same name.")
        return {
            "query": question,
            "session_id": options["session"],
            "files": files,
            "variables": {name: self._namespace[name] for name in options["variables"]},
        }

    @property
    def _namespace(self) -> dict[str, Any]:
        assert self.shell is not None
        return cast("dict[str, Any]", self.shell.user_ns)

    def _chain(self, model: str | None) -> CodeChain:
        """Return the variable `code_chain` of the notebook if it is a chain, else a chain for the model, created once."""
        from code_chains.factory import create_code_chain
        from code_chains.models import default_model

        chain = self._namespace.get("code_chain")
        if model is None and isinstance(chain, CodeChain):
            return chain
        name = model or default_model()
        if name not in self._chains:
            self._chains[name] = create_code_chain(name)
        return self._chains[name]


def _parse_options(line: str) -> tuple[dict[str, Any], str]:
    """Return the options at the beginning of a line, and the rest of it verbatim, including quotation marks."""
    words, rest = [], line.strip()
    while rest.startswith("-"):
        word, _, rest = rest.partition(" ")
        words.append(word)
        if word in _OPTIONS_WITH_VALUE:
            value, rest = _split_first_word(rest)
            words.append(value)
        rest = rest.strip()
    try:
        return cast("dict[str, Any]", _options.main(words, standalone_mode=False)), rest
    except click.ClickException as error:
        raise UsageError(
            f"{error.format_message()}\n\n{_options.get_help(click.Context(_options))}"
        ) from error


_OPTIONS_WITH_VALUE = {
    name for option in _options.params for name in option.opts if not getattr(option, "is_flag", False)
}


def _split_first_word(text: str) -> tuple[str, str]:
    """Return the first word or quoted string without its quotation marks, and the rest."""
    match = re.match(r"""\s*(?:"([^"]*)"|'([^']*)'|(\S+))""", text)
    if match is None:
        return "", text
    return next(filter(None, match.groups()), ""), text[match.end() :]


def _display_answer(chain: CodeChain, state: dict[str, Any]) -> dict[str, Any]:
    """Answer a question and display its progress; the answer is streamed."""
    stage, answer = DisplayHandle(), DisplayHandle()
    stage.display(Pretty("Starting …"))
    run = _RunDisplay()
    result: Any = None
    is_displayed = False
    stream = cast("Generator[Any, None, None]", chain.stream(state, {"callbacks": [StageDisplay(stage)]}))
    try:
        with closing(stream):
            for chunk in stream:
                result = chunk if result is None else result + chunk
                run.show(chunk)
                if chunk.get("answer"):
                    show = answer.update if is_displayed else answer.display
                    show(Pretty(strip_control_chars(result["answer"])))
                    is_displayed = True
    finally:
        verdict = (result or {}).get("verdict")
        stage.update(Pretty(printable(f"{verdict.status}: {verdict.reason}") if verdict else ""))
    return dict(result)


class _RunDisplay:
    """The programs of a question as they are written, what they print meanwhile, and the outcome."""

    def __init__(self) -> None:
        self._program = self._output = ""
        self._live: DisplayHandle | None = None

    def show(self, chunk: Mapping[str, Any]) -> None:
        """Display what is new in a chunk of the chain's result."""
        if chunk.get("execution"):  # Cached outcomes come all at once.
            self._show_outcome(chunk["code"], chunk["execution"])
            return
        for program in chunk.get("programs") or ():
            self._show_program(program)
        if chunk.get("stdout"):
            self._show_output(self._output + chunk["stdout"])

    def _show_program(self, program: str) -> None:
        self._program, self._output, self._live = program, "", None
        display(Markdown(fenced(strip_control_chars(program), "python")))

    def _show_output(self, output: str) -> None:
        self._output = output
        text = Pretty(strip_control_chars(output.rstrip("\n")))
        if self._live is None:
            self._live = DisplayHandle()
            self._live.display(text)
        else:
            self._live.update(text)

    def _show_outcome(self, code: str, execution: Execution) -> None:
        if code != self._program:  # An earlier program was the best.
            self._show_program(code)
        if execution.output:
            self._show_output(execution.output)
        for artifact in execution.artifacts:
            if artifact.media_type in _IMAGES:
                display(Image(artifact.data))
            else:
                display(Pretty(f"{strip_control_chars(artifact.name)} ({len(artifact.data):,} bytes)"))
