"""The command line: the commands that answer questions; the others are in modules beside this one.

The answer goes to standard output, everything else to standard error. Exit codes: 0 answered, 1 not answered,
2 usage error, 130 interrupted. Heavy modules are imported when a command runs, so that `--help` is fast.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from code_chains.apps.chain_options import (
    approve_option,
    chain_options,
    chains_options,
    create_chain,
    create_chains,
    receipt_option,
)
from code_chains.apps.terminal import (
    cli_batch,
    cli_eval,
    cli_image,
    cli_lesson,
    cli_log,
    cli_resources,
    cli_verify,
)
from code_chains.apps.terminal.cli_log import manage_conversations
from code_chains.apps.terminal.cli_options import (
    echo,
    file_option,
    files_by_name,
    handle_errors,
    parse_keys,
    refuse_options,
    show_start,
    terminal_options,
)


class _Commands(click.Group):
    """The commands; a question in the place of one is told where it belongs."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that the first argument names."""
        if args and self.get_command(ctx, args[0]) is None and " " in args[0].strip():
            raise click.UsageError(f"To ask a question: code-chains ask {shlex.quote(args[0])}")
        return super().resolve_command(ctx, args)


class _QuestionCommand(click.Command):
    """A command whose argument may begin with a minus sign, as `-5 + 3` does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with what is no option behind all options."""
        questions = [arg for arg in args if _NEGATIVE.match(arg)]
        if questions and "--" not in args:
            args = [*(arg for arg in args if arg not in questions), "--", *questions]
        return super().parse_args(ctx, args)


_MAX_CONVERSATIONS = 64
"""Conversations of the page whose state is held at once; those of others are computed again when they continue."""
_NEGATIVE = re.compile(r"-[\d.( ][^=]*\s")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="code-chains", message="%(prog)s %(version)s")
def cli() -> None:
    """Answer questions with executed code.

    A model writes Python, static checks review it, a kernel sandbox runs it, and a model phrases the answer.
    """


cli.add_command(cli_resources.cache)
cli.add_command(cli_resources.completion)
cli.add_command(cli_resources.doctor)
cli.add_command(cli_eval.evaluate_command)
cli.add_command(cli_image.image)
cli.add_command(cli_resources.index)
cli.add_command(cli_lesson.learn)
cli.add_command(cli_lesson.lesson)
cli.add_command(cli_log.log)
cli.add_command(cli_batch.run)
cli.add_command(cli_resources.models)
cli.add_command(cli_resources.search)
cli.add_command(cli_verify.verify)


# -- at the terminal -----------------------------------------------------------------------------------------


@cli.command(cls=_QuestionCommand)
@click.argument("question", nargs=-1)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the complete result as JSON instead of the answer."
)
@click.option(
    "--tests",
    type=click.Path(exists=True, dir_okay=False),
    help="A file of assertions that the program must pass.",
)
@receipt_option
@click.option("--cache", is_flag=True, help="Cache good answers; repeating a question costs nothing.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder for figures and files of the program. [default: answer-files]",
)
@click.option(
    "-c", "--continue", "is_followup", is_flag=True, help="Continue the conversation of the last question."
)
@click.option(
    "--log/--no-log",
    default=True,
    envvar="CODE_CHAINS_LOG",
    help="Whether to log the question; CODE_CHAINS_LOG=0 turns it off for all.",
)
@terminal_options
@handle_errors
def ask(
    question: tuple[str, ...],
    receipt: str | None,
    out: str | None,
    is_followup: bool,
    log: bool,
    files: tuple[str, ...],
    as_json: bool,
    show: str,
    tests: str | None,
    approve: bool,
    **options: Any,
) -> None:
    """Ask a QUESTION and get an answer computed by code.

    Without QUESTION, or with -, standard input is the question. With one, what is piped in is a file for the
    program, unless --approve needs the input. Figures and files that the program makes are saved; no file is
    ever replaced.

    Example: code-chains ask "What is the sum of the numbers from 1 to 5?"
    Example: cat sales.csv | code-chains ask "What is the total amount?"
    """
    show_start()
    from code_chains.apps.artifact_folder import DEFAULT_FOLDER, ArtifactFolder
    from code_chains.apps.terminal.ask import Ask, open_log, question_of, read_tests
    from code_chains.receipts import save_receipt

    keys, text, assertions = parse_keys(show), question_of(question), read_tests(tests)
    if is_followup and not log:
        raise click.UsageError(
            "--continue needs the log of questions: leave out --no-log and CODE_CHAINS_LOG=0."
        )
    folder = ArtifactFolder(Path(out or DEFAULT_FOLDER))
    with open_log(is_on=log) as questions:
        if questions is None and is_followup:
            raise click.ClickException("--continue needs the log of questions, which cannot be opened.")
        session_id = questions.last() if questions is not None and is_followup else None
        asked = Ask(text, folder=folder, log=questions, session_id=session_id)
        asked.add_files(files)
        if question not in ((), ("-",)) and not approve:
            asked.add_standard_input()
        asked.name_missing_files()
        if out:
            folder.check()
        result = asked.answer(keys, tests=assertions, as_json=as_json, approve=approve, **options)
    if receipt:
        save_receipt(result["receipt"], Path(receipt))
    if result["verdict"].ok and (out or not as_json):  # JSON has the artifacts, too.
        asked.save_artifacts(result)
    sys.exit(0 if result["verdict"].ok else 1)


@cli.command()
@click.option(
    "--session", metavar="NAME", help="Save the conversation under this name, and continue it if it exists."
)
@click.option("--list", "is_listing", is_flag=True, help="List the saved conversations, and exit.")
@click.option("--delete", metavar="NAME", help="Delete the saved conversation NAME, and exit.")
@terminal_options
@handle_errors
def chat(
    session: str | None,
    is_listing: bool,
    delete: str | None,
    files: tuple[str, ...],
    show: str,
    approve: bool,
    **options: Any,
) -> None:
    """Hold a conversation: programs build on earlier ones.

    /help lists the commands. Questions may also come from a pipe, one per line. A budget applies to all of
    them together.

    Example: code-chains chat --session sales -f sales.csv
    """
    from code_chains.inputs import check_session_id

    if is_listing or delete is not None:
        manage_conversations(delete)
        return
    keys = parse_keys(show)
    checked_files = files_by_name(files)
    name = None if session is None else check_session_id(session)
    from code_chains.apps.terminal.chat import Chat, open_memory
    from code_chains.apps.terminal.progress import Progress

    progress = Progress(keys)
    approver = progress.approve if approve else None
    with (
        open_memory(name) as memory,
        create_chain(approve=approver, conversation_memory=memory, **options) as chain,
    ):
        Chat(chain, progress, name=name, files=checked_files).run()


# -- servers -------------------------------------------------------------------------------------------------


@cli.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; others require a token."
)
@click.option("--port", default=8080, show_default=True, help="Port to listen on; 0 selects a free one.")
@click.option("--token", is_flag=True, help="Always require a token; locks out other users of this machine.")
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Name in the address of a proxy in front of the page, which then requires a token; repeatable.",
)
@click.option("--no-open", is_flag=True, help="Do not open the page in a browser.")
@click.option("--concurrency", default=4, show_default=True, help="How many programs run at once.")
@click.option("--no-store", is_flag=True, help="Do not store conversations; they end with the server.")
@click.option(
    "--lessons",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with lessons, which the page has instead; -m answers questions about exercises, none is asked without.",
)
@approve_option
@chains_options
@handle_errors
def serve(
    host: str,
    port: int,
    token: bool,
    allowed_hosts: tuple[str, ...],
    no_open: bool,
    concurrency: int,
    no_store: bool,
    lessons: Path | None,
    approve: bool,
    **options: Any,
) -> None:
    """Open a page to ask and to see programs run, or one of lessons.

    A budget applies to all questions together. Conversations are stored on this machine; each browser finds its own.

    Example: code-chains serve --model openai:gpt-5-mini --model local
    """
    if concurrency < 1:
        raise click.BadParameter("must be at least 1", param_hint="--concurrency")
    from code_chains.apps.page import PageApprover
    from code_chains.apps.page import serve as serve_page
    from code_chains.apps.page.address import Address
    from code_chains.apps.page.history import open_memory
    from code_chains.apps.terminal.question_log import data_folder

    folder = None if no_store else data_folder() / "page"
    served: dict[str, Any] = {
        "address": Address(host, port, token, allowed_hosts),
        "concurrency": concurrency,
    }
    served |= {"open_browser": not no_open, "folder": folder}
    if lessons is not None:
        _serve_lessons(lessons, options["models"][:1], options["base_url"], **served)
        return
    # A class would wait for second attempts at endless loops, which nobody asked for.
    source = click.get_current_context().get_parameter_source("max_attempts")
    options |= {"repeat_limits": source is not ParameterSource.DEFAULT, "max_sessions": _MAX_CONVERSATIONS}
    addresses = options["network"]
    # Visitors have not opened these addresses: whoever asks has to consent before programs connect.
    asks = approve or addresses
    approver = PageApprover(addresses, is_once=not approve) if asks else None
    with (
        open_memory(folder) as memory,
        create_chains(approve=approver, conversation_memory=memory, **options) as chains,
    ):
        serve_page(chains, **served)


def _serve_lessons(lessons: Path, models: Sequence[str], base_url: str | None, **served: Any) -> None:
    """Serve the lessons in a folder; nobody asks a model there but for hints."""
    from code_chains.apps.page.lesson_server import serve_lessons
    from code_chains.apps.page.lessons import LessonShelf
    from code_chains.lessons.progress import open_store
    from code_chains.models import resolve_model

    tutors = [resolve_model(model, base_url=base_url) for model in models]
    with open_store(served["folder"]) as kept, closing(LessonShelf(lessons, kept, *tutors)) as shelf:
        serve_lessons(shelf, **served)


@cli.command()
@file_option("A file that programs may read; repeatable.")
@click.option(
    "--folder",
    "folders",
    multiple=True,
    metavar="PATH",
    help="A folder whose files programs may read; repeatable.",
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; others require --token."
)
@click.option("--port", default=8081, show_default=True, help="Port to listen on; 0 selects a free one.")
@click.option(
    "--token",
    "tokens",
    multiple=True,
    envvar="CODE_CHAINS_MCP_TOKEN",
    show_envvar=True,
    help="Bearer token of a client; repeatable. Others see command lines, so use the variable. [default: a new one]",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Another name of the server in addresses, e.g. of a proxy; repeatable.",
)
@chain_options
@handle_errors
def mcp(
    files: tuple[str, ...],
    folders: tuple[str, ...],
    http: bool,
    host: str,
    port: int,
    tokens: tuple[str, ...],
    allowed_hosts: tuple[str, ...],
    model: str | None,
    **options: Any,
) -> None:
    """Serve the Model Context Protocol on standard input or HTTP.

    run_python runs programs in the sandbox. answer_with_code has a model write them; it is available if a
    model is named or an API key is set. The budget applies to all questions together.

    Example: code-chains mcp --seconds 30 --memory 1G --folder reports
    Example: code-chains mcp --http --port 8081
    """
    if http:
        from code_chains.apps.mcp.http import check_access, serve_http

        check_access(host, tokens)
    else:
        refuse_options("--http", "host", "port", "tokens", "allowed_hosts")
    from langchain_core.runnables import RunnableLambda

    from code_chains.apps.mcp.files import SharedFiles
    from code_chains.models import default_model

    name = model or default_model()
    shared = SharedFiles(files, folders)
    answers = bool(model) or name != "local"
    tools = (
        f"run_python, answer_with_code with {name}"
        if answers
        else "run_python (answer_with_code needs --model)"
    )
    with create_chain(model=name if answers else RunnableLambda(str), **options) as chain:
        if http:
            serve_http(
                chain,
                host=host,
                port=port,
                tokens=tokens,
                allowed_hosts=allowed_hosts,
                answers=answers,
                shared=shared,
                description=tools,
            )
        else:
            from code_chains.apps.mcp.server import serve as serve_stdio

            echo(f"Serving on standard input and output: {tools}", err=True)
            serve_stdio(chain, answers=answers, shared=shared)
