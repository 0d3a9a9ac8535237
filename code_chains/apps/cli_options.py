"""What the commands share: error handling, the options of a chain, and the chain that they describe."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from code_chains.callbacks.redaction import PrintableFormatter, printable

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from code_chains.batch.questions import Question
    from code_chains.callbacks.budget import Budget
    from code_chains.chains.validate import Approve
    from code_chains.code_chain import CodeChain
    from code_chains.conversations.memory import ConversationMemory

__all__ = [
    "approve_option",
    "chain_arguments",
    "chain_options",
    "chains_options",
    "check_model_is_named",
    "check_named_files",
    "check_named_files_of",
    "create_chain",
    "create_chains",
    "echo",
    "file_option",
    "files_by_name",
    "handle_errors",
    "parse_budget",
    "parse_keys",
    "refuse_options",
    "show_start",
    "terminal_options",
]

_BETWEEN_NAMES = re.compile(r"[\s'\"`()\[\]{}<>,;:?!，。：；？！（）「」《》]+")
_MAX_NAME_BYTES = 255
_DATA_SUFFIXES = (
    ".csv",
    ".tsv",
    ".xlsx",
    ".xls",
    ".json",
    ".jsonl",
    ".parquet",
    ".sqlite",
    ".db",
    ".txt",
    ".xml",
)
SHOWABLE_KEYS = ("code", "output", "sources", "verdict", "attempts", "usage")
CURATED = "<curated>"
_SIGTERM_EXIT_CODE = 128 + signal.SIGTERM
_Command = TypeVar("_Command", bound=Callable[..., Any])

approve_option = click.option(
    "--approve", is_flag=True, help="Show each program and ask for approval before it runs."
)


def file_option(description: str) -> Callable[[_Command], _Command]:
    """Return the option `--file`, whose values shells complete."""
    return click.option(
        "-f", "--file", "files", multiple=True, type=click.Path(), metavar="PATH", help=description
    )


_MODEL_HELP = (
    "openai:gpt-5-mini, local, hf:OWNER/REPO:FILE, gguf:PATH, … [default: OpenAI if a key is set, else local]"
)
_MODEL_OPTION = click.option("-m", "--model", help=_MODEL_HELP)
_MODELS_OPTION = click.option(
    "-m", "--model", "models", multiple=True, help=f"{_MODEL_HELP} Repeatable: the page offers a choice."
)
_CHAIN_OPTIONS = (
    click.option("--base-url", help="Base URL of an OpenAI-compatible server."),
    click.option(
        "--fallback-model",
        "fallback_models",
        multiple=True,
        metavar="MODEL",
        help="Model that tries while the verdict is failed, not of --base-url; repeatable.",
    ),
    click.option(
        "--executor",
        default="strongest",
        show_default=True,
        help="strongest (sandbox or wasm), sandbox, docker, podman, container, e2b, modal, daytona, wasm, monty,"
        " sql, or none (no isolation).",
    ),
    click.option(
        "--checks",
        default="standard",
        show_default=True,
        help="Static checks before a run: standard, strict, none.",
    ),
    click.option(
        "--max-attempts", default=3, show_default=True, help="Maximum number of attempts of a model."
    ),
    click.option(
        "--samples",
        default=1,
        show_default=True,
        help="Programs to generate at once; the majority result wins.",
    ),
    click.option("--judge", is_flag=True, help="Have the model judge the outcome."),
    click.option(
        "--verify", is_flag=True, help="Solve it again by the same model; plausible if programs agree."
    ),
    click.option(
        "--verify-with", metavar="MODEL", help="Solve it again by another model; plausible if programs agree."
    ),
    click.option(
        "--schema-only",
        is_flag=True,
        help="Send the model names, sizes, columns and types; no rows, values or output.",
    ),
    click.option("--plan", is_flag=True, help="Let the model split the task into steps."),
    click.option(
        "--snippets",
        is_flag=False,
        flag_value=CURATED,
        metavar="[FOLDER]",
        help="Give the model examples: of a folder, or without one those that come with the package.",
    ),
    click.option(
        "--package",
        metavar="NAME",
        help="Show the model how the functions of an installed package are called, e.g. acme_tax.",
    ),
    click.option(
        "--language",
        default="auto",
        show_default=True,
        help="Language of the answer, e.g. es; auto: as the question.",
    ),
    click.option(
        "--budget",
        multiple=True,
        metavar="LIMIT=N",
        help="E.g. usd=0.05, tokens=9000, seconds=60; repeatable.",
    ),
    click.option(
        "--seconds", default=10.0, show_default=True, help="Wall-clock limit of one run, in seconds."
    ),
    click.option("--memory", default="512M", show_default=True, help="Memory limit of one run."),
)
_TERMINAL_OPTIONS = (
    file_option("A file, folder or pattern such as 'data/*.csv' that programs may read; repeatable."),
    click.option(
        "--show",
        default="code,output,sources,verdict",
        show_default=True,
        help=f"What to show besides the answer: {', '.join(SHOWABLE_KEYS)}.",
    ),
    approve_option,
)


# -- decorators ----------------------------------------------------------------------------------------------


def chain_options(command: _Command) -> _Command:
    """Add the options of a chain, which `create_chain` takes."""
    return _MODEL_OPTION(_add_options(command))


def chains_options(command: _Command) -> _Command:
    """Add the options of chains with one model each, which `create_chains` takes."""
    return _MODELS_OPTION(_add_options(command))


def _add_options(command: _Command) -> _Command:
    for option in reversed(_CHAIN_OPTIONS):
        command = option(command)
    return command


def terminal_options(command: _Command) -> _Command:
    """Add the options of commands that answer questions at the terminal."""
    for option in reversed(_TERMINAL_OPTIONS):
        command = option(command)
    return chain_options(command)


def handle_errors(command: _Command) -> _Command:
    """Turn expected errors into a message of one line and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        _configure_process()
        try:
            command(*args, **kwargs)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (Exception, KeyboardInterrupt) as error:
            sys.exit(_report(error))

    return run  # type: ignore[return-value]


def _configure_process() -> None:
    with contextlib.suppress(ValueError):  # Not in the main thread.
        # Exit by an exception, so that processes and temporary files are cleaned up.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_SIGTERM_EXIT_CODE))
    if logging.lastResort:  # It prints warnings in a process without a logging configuration.
        logging.lastResort.setFormatter(PrintableFormatter())


_ARGUMENT = re.compile(r"\bexecutor='(\w+)'")
"""How Python names the executor, for which there is an option here."""


def _report(error: BaseException) -> int:
    """Print an error and return the exit code."""
    from code_chains.errors import CodeChainsError, ConfigurationError, InputError

    if isinstance(error, KeyboardInterrupt | click.Abort):
        click.echo("Interrupted.", err=True)
        return 130
    if isinstance(error, BrokenPipeError):  # The reader of the answer is gone; keep the flush at exit silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(error, CodeChainsError):
        message = _ARGUMENT.sub(r"--executor \1", str(error))
        echo(f"Error: {message}", err=True)
        return 2 if isinstance(error, ConfigurationError | InputError) else 1
    # A traceback may quote a provider or a file, so it is escaped and redacted like any other message.
    echo("".join(traceback.format_exception(error)), err=True)
    return 1


def show_start() -> None:
    """Say on a terminal that something happens: the imports that follow take seconds. The next line replaces it."""
    if sys.stderr.isatty():
        click.echo("Starting …\r", nl=False, err=True)


def echo(message: str, *, err: bool = False) -> None:
    """Print a message. All messages that quote an error, a file or a name go through here."""
    click.echo(printable(message), err=err)


# -- values --------------------------------------------------------------------------------------------------


def create_chain(
    *,
    approve: Approve | None = None,
    budget: tuple[str, ...],
    conversation_memory: ConversationMemory | bool = True,
    **options: Any,
) -> CodeChain:
    """Create the chain that the options describe, and optimise the process for it."""
    import gc

    from code_chains.executors import Limits
    from code_chains.factory import create_code_chain

    arguments = chain_arguments(**options)
    arguments["limits"] = Limits(**arguments["limits"])
    chain = create_code_chain(
        **arguments, approve=approve, budget=parse_budget(budget), memory=conversation_memory
    )
    gc.freeze()  # Exclude everything loaded so far from garbage collections, each of which would take 0.1 s.
    return chain


@contextlib.contextmanager
def create_chains(*, models: tuple[str, ...], **options: Any) -> Iterator[dict[str, CodeChain]]:
    """Create a chain for each model, by its name. They share executor and budget; leaving closes them."""
    from code_chains.models import default_model

    first, *others = dict.fromkeys(models or (None,))
    with create_chain(model=first, **options) as chain:
        chains = {_label(first or default_model()): chain}
        for name in others:
            if name is not None:
                chains[_label(name)] = _create_sibling(chain, model=name, **options)
        yield chains


def _create_sibling(
    chain: CodeChain,
    *,
    approve: Approve | None,
    budget: tuple[str, ...],
    conversation_memory: ConversationMemory | bool,
    **options: Any,
) -> CodeChain:
    """Create a chain with the executor and the budget of another."""
    from code_chains.factory import create_code_chain

    arguments = chain_arguments(**options) | {"executor": chain.executor, "limits": None}
    return create_code_chain(**arguments, approve=approve, budget=chain.budget)


def _label(model: str) -> str:
    """Return the name of a model for visitors, who need not know folders of this machine."""
    return f"gguf:{Path(model).name}" if model.startswith("gguf:") else model


def chain_arguments(
    *,
    model: str | Runnable[Any, Any] | None,
    seconds: float,
    memory: str,
    snippets: str | None,
    package: str | None = None,
    verify: bool = False,
    verify_with: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Return the arguments of `create_code_chain` that the options describe, as JSON values if the model is a name."""
    from code_chains.models import default_model

    check_model_is_named(model, options.get("base_url"))
    return {
        **options,
        "model": model or default_model(),
        "limits": {"seconds": seconds, "memory": memory},
        "snippets": _snippets(snippets, package),
        "verify": verify_with or verify,
    }


def check_model_is_named(model: object, base_url: str | None) -> None:
    """Raise a usage error if the default model, which is none of a server's, would be asked for at one."""
    if base_url and not model and "CODE_CHAINS_MODEL" not in os.environ:
        raise click.UsageError("Name the model that the server of --base-url offers, with --model.")


def _snippets(folder: str | None, package: str | None) -> str | bool:
    """Return the argument `snippets`."""
    from code_chains.arguments import PACKAGE_PREFIX

    if folder and package:
        raise click.UsageError(
            "Name --snippets or --package. For both, add examples to SnippetStore.from_package in Python."
        )
    if package:
        return PACKAGE_PREFIX + package
    if folder and folder != CURATED and not Path(folder).expanduser().exists():
        raise click.BadParameter(
            f"the folder {folder!r} does not exist. If it is the question, put it before --snippets.",
            param_hint="--snippets",
        )
    return True if folder == CURATED else folder or False


def parse_budget(limits: tuple[str, ...]) -> Budget | None:
    """Parse limits of the form `NAME=N`."""
    from code_chains.callbacks.budget import INTEGER_LIMITS, LIMITS, Budget

    values: dict[str, Any] = {}
    for limit in limits:
        name, _, number = limit.partition("=")
        if name not in LIMITS:
            raise click.BadParameter(f"{name!r} is none of {', '.join(LIMITS)}", param_hint="--budget")
        try:
            values[name] = int(number) if name in INTEGER_LIMITS else float(number)
        except ValueError:
            raise click.BadParameter(
                f"{limit!r} has no number, as in {name}=5", param_hint="--budget"
            ) from None
    return Budget(**values) if values else None


def check_named_files(question: str, files: Mapping[str, Any]) -> None:
    """Raise if a question names a file of the current folder that programs would not see.

    Raises:
        InputError: It does; the message says how to pass the file.
    """
    from code_chains.errors import InputError

    for name in _names_of_files(question):
        if os.path.isfile(name) and Path(name).name not in files:
            raise InputError(f"Programs cannot see {name}, which the question names. Pass it with -f {name}.")


def missing_files(question: str, files: Mapping[str, Any]) -> list[str]:
    """Return the names of data that a question holds and no file has; programs may write some of them."""
    names = [name for name in _names_of_files(question) if Path(name).suffix.lower() in _DATA_SUFFIXES]
    passed = {Path(file).name for file in files}
    return [name for name in names if Path(name).name not in passed]


def _names_of_files(question: str) -> list[str]:
    """Return the words of a question that may name files."""
    words = {word.rstrip(".") for word in _BETWEEN_NAMES.split(question)}
    return sorted(
        word for word in words if "." in word and len(word.encode(errors="replace")) <= _MAX_NAME_BYTES
    )


def check_named_files_of(questions: Iterable[Question]) -> None:
    """Raise if one of many questions names a file of the current folder that programs would not see.

    Raises:
        InputError: It does; the message says which one.
    """
    from code_chains.errors import InputError

    for question in questions:
        try:
            check_named_files(question.query, question.inputs.get("files") or {})
        except InputError as error:
            raise InputError(f"{question.origin}: {error}") from None


def parse_keys(show: str) -> tuple[str, ...]:
    """Parse the value of `--show`."""
    keys = tuple(key.strip() for key in show.split(",") if key.strip())
    for key in keys:
        if key not in SHOWABLE_KEYS:
            raise click.BadParameter(f"{key!r} is none of {', '.join(SHOWABLE_KEYS)}", param_hint="--show")
    return keys


def refuse_options(needed: str, *parameters: str) -> None:
    """Raise if one of these parameters is on the command line, as it means nothing without another option.

    Raises:
        UsageError: One is.
    """
    from click.core import ParameterSource

    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in parameters and source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[-1]} needs {needed}.")


def files_by_name(paths: tuple[str, ...]) -> dict[str, Path]:
    """Return the paths by the names that programs see: files, the files of folders, and what matches patterns.

    Raises:
        InputError: A file does not exist or is unreadable, or two have the same name.
    """
    from code_chains.inputs import check_files

    return check_files(list(map(Path, paths)))
