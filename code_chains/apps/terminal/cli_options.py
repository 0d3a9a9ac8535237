"""What the commands of the terminal share: error handling and options."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from code_chains.apps.chain_options import approve_option, chain_options
from code_chains.callbacks.redaction import PrintableFormatter
from code_chains.records.printable import printable

if TYPE_CHECKING:
    pass

SHOWABLE_KEYS = ("code", "output", "sources", "verdict", "attempts", "usage")
_SIGTERM_EXIT_CODE = 128 + signal.SIGTERM
_Command = TypeVar("_Command", bound=Callable[..., Any])


def file_option(description: str) -> Callable[[_Command], _Command]:
    """Return the option `--file`, whose values shells complete."""
    return click.option(
        "-f", "--file", "files", multiple=True, type=click.Path(), metavar="PATH", help=description
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


_OPTIONS = {
    "executor": "--executor",
    "network": "--network",
    "Agreement.model": "--verify-with",
    "Escalate.models": "--fallback-model",
    "Limits.memory": "--memory",
    "Limits.seconds": "--seconds",
}
"""The options for what Python names in another way."""
_ARGUMENT = re.compile(rf"\b({'|'.join(map(re.escape, _OPTIONS))})=(?:'([\w:.-]+)')?")


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
        message = _ARGUMENT.sub(lambda match: f"{_OPTIONS[match[1]]} {match[2] or ''}", str(error))
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


def parse_keys(show: str) -> tuple[str, ...]:
    """Parse the value of `--show`."""
    keys = tuple(key.strip() for key in show.split(",") if key.strip())
    for key in keys:
        if key not in SHOWABLE_KEYS:
            raise click.BadParameter(
                f"unknown value {key!r}; choose from {', '.join(SHOWABLE_KEYS)}", param_hint="--show"
            )
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
    from code_chains.executors.inputs import check_files

    return check_files(list(map(Path, paths)))
