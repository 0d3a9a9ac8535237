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
from IPython.display import DisplayHandle, FileLink, Image, Markdown, Pretty, display
from langchain_core.callbacks import BaseCallbackHandler

from code_chains.apps.answers import render_answer, text_beside_views, views_of
from code_chains.apps.artifact_folder import DEFAULT_FOLDER, ArtifactFolder
from code_chains.apps.chain_options import create_chain, options_named, receipt_option
from code_chains.apps.remedies import CHECKS, remedy
from code_chains.apps.run_view import STAGE_LABELS, RunView, file_notes
from code_chains.apps.safe_html import MAX_CHARS, plain
from code_chains.assembly.code_chain import CodeChain
from code_chains.callbacks.redaction import describe_error
from code_chains.chains.tools import describe_failure
from code_chains.conversations.frames import framed
from code_chains.errors import StoreError
from code_chains.executors.inputs import check_files
from code_chains.executors.values import value_of
from code_chains.inputs import fenced, shortened
from code_chains.language.reasons import how_to_check, verdict_words
from code_chains.receipts import save_receipt
from code_chains.records.printable import printable, strip_control_chars
from code_chains.records.screen import as_shown
from code_chains.state import Artifact, Execution, Verdict

_DEFAULT_SESSION = "notebook"
_IMAGES = ("image/png", "image/jpeg")
"""Media types of figures that are displayed; SVG could run scripts."""
_SHOWN_FIGURE = re.compile(r"figure-\d+\.(png|json)")
"""The names of figures that a program showed and did not save itself."""


@click.command("%%code_chain", add_help_option=False)
@click.option(
    "-m", "--model", help="Name of a model. [default: the notebook's chain code_chain, if it has one]"
)
@options_named("base_url")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    help="A file, folder or pattern that programs may read; repeatable.",
)
@click.option(
    "-v",
    "--variable",
    "variables",
    multiple=True,
    help="A variable of the notebook to pass to programs; repeatable.",
)
@click.option(
    "-s", "--session", default=_DEFAULT_SESSION, show_default=True, help="Name of the conversation."
)
@click.option("--into", metavar="NAME", help="Variable for the value: a number, text, list, frame …")
@click.option("--result", metavar="NAME", help="Variable for the complete result.")
@receipt_option
@click.option("--new", is_flag=True, help="Start a new conversation.")
@options_named("judge", "max_attempts")
@click.option(
    "--budget",
    multiple=True,
    metavar="LIMIT=N",
    help="Of this and later cells, e.g. usd=0.05, seconds=60; repeatable.",
)
@options_named("seconds", "memory")
@click.option("-h", "--help", "is_help", is_flag=True, help="Show this help.")
def _options(**options: Any) -> dict[str, Any]:
    """Ask the question in the cell, or in the line after the options.

    The next cell continues with the state of this one: variables, imports and files of its program. Files that it makes
    are saved in the folder answer-files.
    """
    return options


_OF_CHAIN = ("model", "base_url", "judge", "max_attempts", "budget", "seconds", "memory")
"""Options of the chain; the others are those of a question."""


class _StoppedError(KeyboardInterrupt):
    """A cell was interrupted. Its line is all that is displayed, and the cells after it do not run."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


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


_QUESTION = re.compile(r"%(code_chain|lesson)[ \t]+(\S.*\?)\s*")


def keep_questions(lines: list[str]) -> list[str]:
    """Return the lines of a cell with calls for questions of magics: IPython takes `?` at the end of a line for help."""
    asked = (_QUESTION.fullmatch(line) for line in lines)
    return [
        f"get_ipython().run_line_magic({match[1]!r}, {match[2]!r})\n" if match else line
        for match, line in zip(asked, lines, strict=True)
    ]


@magics_class
class CodeChainMagics(Magics):
    """The magic `%%code_chain`: stages, program, output, figures and answer are displayed below the cell as they arrive."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._chains: dict[tuple[Any, ...], CodeChain] = {}

    @line_cell_magic
    def code_chain(self, line: str, cell: str | None = None) -> None:
        """Ask the question in the cell, or in the line after the options; `--help` lists them."""
        options, rest = _parse_options(line)
        if options["is_help"]:
            display(Pretty(_help()))
            return
        try:
            self._answer(f"{rest}\n{cell or ''}".strip(), options)
        except UsageError:
            raise
        except KeyboardInterrupt:  # Not 200 lines of what happened to be running.
            raise _StoppedError("Stopped. The conversation is unchanged.") from None
        except click.ClickException as error:
            raise UsageError(error.format_message()) from error
        except Exception as error:
            raise UsageError(describe_error(error)) from error

    def _answer(self, question: str, options: Mapping[str, Any]) -> None:
        for name in filter(None, (options["into"], options["result"])):
            if not name.isidentifier():
                raise UsageError(f"A variable cannot be called {name!r}.")
        chain = self._chain(options)
        if options["new"]:
            chain.forget(options["session"])
        if not question and options["new"]:
            return
        if (
            options["session"] != _DEFAULT_SESSION
            and not options["new"]
            and not chain.turns(options["session"])
        ):
            display(Pretty(printable(f"The conversation {options['session']!r} begins here: it is empty.")))
        result = _display_answer(chain, self._state(question, options))
        if options["receipt"]:
            save_receipt(result["receipt"], Path(options["receipt"]))
        if options["result"]:
            self._namespace[options["result"]] = result
        if options["into"]:
            self._assign(options["into"], result)

    def _assign(self, name: str, result: Mapping[str, Any]) -> None:
        """Assign the value of the program, unless there is no answer."""
        if not result["verdict"].ok:
            raise UsageError(f"There is no answer, so {name} was not assigned.")
        try:
            self._namespace[name] = result["value"] if "value" in result else value_of(result["execution"])
        except LookupError as error:
            raise UsageError(f"{name} was not assigned. {error} `--result NAME` has its text.") from error

    def _state(self, question: str, options: Mapping[str, Any]) -> dict[str, Any]:
        if missing := [name for name in options["variables"] if name not in self._namespace]:
            raise UsageError(f"The notebook has no variable {missing[0]!r}.")
        return {
            "query": question,
            "session_id": options["session"],
            "files": check_files(list(map(Path, options["files"]))),
            "variables": {name: self._namespace[name] for name in options["variables"]},
            **({"return_value": True} if options["into"] else {}),
        }

    @property
    def _namespace(self) -> dict[str, Any]:
        assert self.shell is not None
        return cast("dict[str, Any]", self.shell.user_ns)

    def _chain(self, options: Mapping[str, Any]) -> CodeChain:
        """Return the chain that the options describe, created once; without any the notebook's own, if it has one."""
        own = self._namespace.get("code_chain")
        chosen = {key: options[key] for key in _OF_CHAIN}
        if isinstance(own, CodeChain) and chosen == _DEFAULTS:
            return own
        key = tuple(chosen.values())
        if key not in self._chains:
            self._chains[key] = create_chain(**chosen)
        return self._chains[key]


def _help() -> str:
    return _options.get_help(click.Context(_options, info_name="%%code_chain", terminal_width=100))


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
        raise UsageError(f"{error.format_message()}\n\n{_help()}") from error


_DEFAULTS = {key: value for key, value in _parse_options("")[0].items() if key in _OF_CHAIN}
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
                    show(
                        _Displayed(
                            _as_html(result),
                            "\n".join([shortened(result["answer"], MAX_CHARS), *file_notes(result)]),
                        )
                    )
                    is_displayed = True
    finally:
        verdict = (result or {}).get("verdict")
        advice = remedy(result or {}, "notebook")
        stage.update(Pretty(printable(_verdict_line(verdict, advice, result or {})) if verdict else ""))
    return dict(result)


def _verdict_line(verdict: Verdict, advice: str, result: Mapping[str, Any]) -> str:
    language = result.get("answer_language")
    title, reason = verdict_words(verdict, language)
    checks = how_to_check(verdict, CHECKS["notebook"], language)
    return " ".join(filter(None, [f"{title}: {reason}", advice, checks]))


def _as_html(result: Mapping[str, Any]) -> str:
    known = {key: result[key] for key in ("output", "execution", "verdict") if key in result}
    notes = "".join(f'<p class="hint">{plain(note)}</p>' for note in file_notes(result))
    return render_answer(result["answer"], **known) + notes


class _RunDisplay:
    """The programs of a question as they are written, what they print meanwhile, and the outcome."""

    def __init__(self) -> None:
        self._run = RunView()
        self._live: DisplayHandle | None = None

    def show(self, chunk: Mapping[str, Any]) -> None:
        """Display what is new in a chunk of the chain's result."""
        for kind, value in self._run.add(chunk):
            if kind == "printed":
                self._show_output(value)
            elif kind == "outcome":
                self._show_outcome(value, chunk)
            else:
                self._show_program(value, is_another=kind == "program" and bool(self._run.failure))

    def _show_program(self, program: str, *, is_another: bool) -> None:
        self._live = None
        if is_another:
            display(Pretty(printable(f"{self._run.failure} Another attempt:")))
        display(Markdown(fenced(strip_control_chars(program), "python")))

    def _show_output(self, output: str) -> None:
        shown = shortened(as_shown(output).rstrip("\n"), MAX_CHARS)
        text = Pretty(strip_control_chars(shown))
        if self._live is None:
            self._live = DisplayHandle()
            self._live.display(text)
        else:
            self._live.update(text)

    def _show_outcome(self, execution: Execution, chunk: Mapping[str, Any]) -> None:
        if output := text_beside_views(execution):
            self._show_output(output)
        for table in views_of(execution):
            display(_Displayed(framed(table, "Table"), execution.result or ""))
        for artifact in execution.artifacts:
            if artifact.media_type in _IMAGES:
                display(Image(artifact.data))
        files = [artifact for artifact in execution.artifacts if not _SHOWN_FIGURE.fullmatch(artifact.name)]
        self._save(files)
        if not execution.ok:
            failure = describe_failure(execution, chunk["code"], chunk.get("problems") or ())
            display(Pretty(strip_control_chars(failure)))

    def _save(self, files: list[Artifact]) -> None:
        folder = ArtifactFolder(Path(DEFAULT_FOLDER))
        try:
            paths = folder.save_all(files)
        except StoreError as error:  # No reason not to show the answer.
            display(Pretty(printable(f"Not saved: {error}")))
            return
        if folder.failure:
            display(Pretty(printable(folder.failure)))
        for path in paths:
            display(FileLink(str(path), result_html_prefix="Saved: "))


class _Displayed:
    """HTML in which no script runs, and its text for where there is no HTML."""

    def __init__(self, html: str, text: str) -> None:
        self._bundle = {"text/html": html, "text/plain": strip_control_chars(text)}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self._bundle
