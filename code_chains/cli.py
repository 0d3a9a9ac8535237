"""Words in, answer out, exit code.

The answer goes to standard output, everything else to standard error. Exit codes: 0 answered, 1 not answered, 2 wrong use,
130 interrupted. Heavy parts are imported when a command runs, so that `--help` is quick.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from code_chains.budget import Budget
    from code_chains.chains.validate import Approve
    from code_chains.code_chain import CodeChain
    from code_chains.memory import ConversationMemory

SHOWN = ("code", "output", "sources", "verdict", "attempts", "usage")
CURATED = "<curated>"
_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="code-chains", message="%(prog)s %(version)s")
def cli() -> None:
    """Answer questions with executed code.

    A model writes Python, checks read it, a kernel sandbox runs it, and a model tells the answer.
    """


def guarded(command: _Command) -> _Command:
    """Turn expected errors into one clear line and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        from code_chains.errors import CodeChainsError, ConfigurationError, InputError

        with contextlib.suppress(ValueError):  # Not in the main thread.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that what was started is ended and cleaned up.
        try:
            command(*args, **kwargs)
        except (KeyboardInterrupt, click.Abort):
            click.echo("Interrupted.", err=True)
            sys.exit(130)
        except (ConfigurationError, InputError) as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(2)
        except CodeChainsError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(1)
        except BrokenPipeError:  # Who read the answer has left; so do we, without a word at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)

    return run  # type: ignore[return-value]


# -- ask -----------------------------------------------------------------------------------------------------------------


_ASSEMBLED = (
    click.option(
        "-m", "--model", help="openai:gpt-5-mini, local, gguf:PATH, … [default: OpenAI with a key, else local]"
    ),
    click.option("--base-url", help="Address of an OpenAI-compatible server that has the model."),
    click.option("--executor", default="sandbox", show_default=True, help="sandbox, or none (protects nothing)."),
    click.option(
        "--checks", default="standard", show_default=True, help="What reads it first: standard, strict, none."
    ),
    click.option("--max-attempts", default=3, show_default=True, help="How often a program is asked for at most."),
    click.option("--samples", default=1, show_default=True, help="Programs to ask for at once; the majority wins."),
    click.option("--judge", is_flag=True, help="Have the model judge the outcome."),
    click.option("--plan", is_flag=True, help="Let the model split the task into steps."),
    click.option(
        "--snippets",
        is_flag=False,
        flag_value=CURATED,
        metavar="[FOLDER]",
        help="Show the model examples: of a folder, or alone those that come with the package.",
    ),
    click.option(
        "--language", default="auto", show_default=True, help="Of the answer: auto is the question's; or e.g. es."
    ),
    click.option("--budget", multiple=True, metavar="LIMIT=N", help="E.g. usd=0.05, tokens=9000, seconds=60."),
    click.option("--seconds", default=10.0, show_default=True, help="Wall-clock seconds of one run."),
    click.option("--memory", default="512M", show_default=True, help="Memory of one run."),
)
_APPROVE = click.option("--approve", is_flag=True, help="Show each program and ask before it runs.")
_AT_THE_TERMINAL = (
    click.option("-f", "--file", "files", multiple=True, metavar="PATH", help="A file programs may read; repeatable."),
    click.option(
        "--show", default="code,output,sources", show_default=True, help=f"Shown besides: {', '.join(SHOWN)}."
    ),
    _APPROVE,
)


def assembling(command: _Command) -> _Command:
    """Give a command the options of a chain, which `_assembled` takes."""
    for option in reversed(_ASSEMBLED):
        command = option(command)
    return command


def answering(command: _Command) -> _Command:
    """Give a command the options of whatever answers questions at the terminal."""
    for option in reversed(_AT_THE_TERMINAL):
        command = option(command)
    return assembling(command)


def _assembled(
    *,
    approve: Approve | None = None,
    budget: tuple[str, ...],
    remembering: ConversationMemory | bool = True,
    **options: Any,
) -> CodeChain:
    """The chain that the options describe, in a process that is there for it."""
    import gc

    from code_chains.executors import Limits
    from code_chains.factory import create_code_chain

    described = _described(**options)
    chain = create_code_chain(
        **{**described, "limits": Limits(**described["limits"])},
        approve=approve,
        budget=_budget(budget),
        memory=remembering,
    )
    gc.freeze()  # What is loaded by now stays, so that no search for garbage goes through it, 0.1 s each time.
    return chain


def _described(
    *, model: str | Runnable[Any, Any] | None, seconds: float, memory: str, snippets: str | None, **options: Any
) -> dict[str, Any]:
    """What the options say of a chain: arguments of `create_code_chain`, as JSON if the model is a name."""
    from code_chains.models import default_model

    return {
        **options,
        "model": model or default_model(),
        "limits": {"seconds": seconds, "memory": memory},
        "snippets": True if snippets == CURATED else snippets or False,
    }


@cli.command()
@click.argument("question")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON instead of the answer.")
@click.option(
    "--tests", type=click.Path(exists=True, dir_okay=False), help="A file of assertions the program must pass."
)
@click.option("--cache", is_flag=True, help="Keep good answers; the same question costs nothing the next time.")
@answering
@guarded
def ask(
    question: str, files: tuple[str, ...], as_json: bool, show: str, tests: str | None, approve: bool, **options: Any
) -> None:
    """Ask a QUESTION and get an answer that code has worked out.

    Example: code-chains ask "What is the sum of the numbers from 1 to 5?"
    """
    from code_chains.inputs import check_files, check_query

    shown = _shown(show)
    state: dict[str, Any] = {"query": check_query(question), "files": check_files(_by_name(files))}
    if tests:
        try:
            state["tests"] = Path(tests).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(f"{tests!r} cannot be read: {error}", param_hint="--tests") from None
    from code_chains.progress import Progress, follow
    from code_chains.state import as_json as plain

    progress = Progress(shown)
    with _assembled(approve=progress.approve if approve else None, **options) as chain:
        result = follow(chain, state, progress, answer=not as_json)
    if as_json:
        click.echo(json.dumps(plain(result), ensure_ascii=False, indent=2))
    sys.exit(0 if result["verdict"].ok else 1)


def _budget(given: tuple[str, ...]) -> Budget | None:
    """The budget of `LIMIT=N` words."""
    from code_chains.budget import LIMITS, WHOLE, Budget

    limits: dict[str, Any] = {}
    for word in given:
        name, _, number = word.partition("=")
        if name not in LIMITS:
            raise click.BadParameter(f"{name!r} is none of {', '.join(LIMITS)}", param_hint="--budget")
        try:
            limits[name] = int(number) if name in WHOLE else float(number)
        except ValueError:
            raise click.BadParameter(f"{word!r} has no number, as in {name}=5", param_hint="--budget") from None
    return Budget(**limits) if limits else None


def _shown(show: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in show.split(",") if name.strip())
    if wrong := [name for name in names if name not in SHOWN]:
        raise click.BadParameter(f"{wrong[0]!r} is none of {', '.join(SHOWN)}", param_hint="--show")
    return names


def _by_name(files: tuple[str, ...]) -> dict[str, str]:
    by_name = {Path(path).name: path for path in files}
    if len(by_name) < len(files):
        raise click.BadParameter("two files have the same name", param_hint="--file")
    return by_name


# -- chat ----------------------------------------------------------------------------------------------------------------


@cli.command()
@click.option("--session", metavar="NAME", help="Keep the conversation under this name, and go on where it was.")
@answering
@guarded
def chat(session: str | None, files: tuple[str, ...], show: str, approve: bool, **options: Any) -> None:
    """Ask one question after another; programs go on with what those before them have left.

    /help says what else there is. Questions may come from a pipe, too, one a line. A budget is for all of them together.

    Example: code-chains chat --session sales -f sales.csv
    """
    from code_chains.inputs import check_files, check_session_id

    shown = _shown(show)
    given = check_files(_by_name(files))
    name = None if session is None else check_session_id(session)
    from code_chains.chat import Chat, remembered
    from code_chains.progress import Progress

    progress = Progress(shown)
    asked = progress.approve if approve else None
    with remembered(name) as turns, _assembled(approve=asked, remembering=turns, **options) as chain:
        Chat(chain, progress, name=name, files=given).run()


# -- many questions ------------------------------------------------------------------------------------------------------


@cli.command()
@click.argument("questions", type=click.Path(exists=True, dir_okay=False))
@click.option("--out", required=True, type=click.Path(dir_okay=False), help="Where answers are written, a line each.")
@click.option("--resume", is_flag=True, help="Go on with that file; what is in it is not asked again.")
@click.option("--concurrency", type=click.IntRange(1), help="Questions at once. [default: two for each core]")
@click.option("--cluster", metavar="ADDRESS|N", help="A Dask scheduler (tcp://…), or N processes of this machine.")
@assembling
@guarded
def run(
    questions: str,
    out: str,
    resume: bool,
    concurrency: int | None,
    cluster: str | None,
    budget: tuple[str, ...],
    **options: Any,
) -> None:
    """Answer all QUESTIONS of a file: .jsonl, .csv with a column query, or a question a line.

    Answers are written as they come, each whole and once; OUT.failed holds what could not be asked. A run that was broken
    off goes on with --resume. The exit code is 0 when each question has its line. Files must be named in the questions.

    Example: code-chains run questions.jsonl --out answers.jsonl
    """
    from code_chains.cluster import map_questions
    from code_chains.ledger import Ledger
    from code_chains.progress import counted
    from code_chains.questions import read_questions

    asked = list(read_questions(questions))
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(Ledger(out, resume=resume))
        limits = _budget(budget)
        chain: Any
        if cluster:
            chain = {**_described(**options), "memory": False}
        else:
            chain = stack.enter_context(_assembled(budget=(), **options))
        answers = map_questions(
            chain,
            asked,
            cluster=int(cluster) if cluster and cluster.isdigit() else cluster,
            concurrency=concurrency,
            ledger=ledger,
            budget=limits,
        )
        counts = counted(answers, total=len(asked), done=len([one for one in asked if one.id in ledger.done]))
    click.echo(f"{out}: {counts}", err=True)
    sys.exit(0 if counts.all_done else 1)


# -- serve ---------------------------------------------------------------------------------------------------------------


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; elsewhere a token is needed.")
@click.option("--port", default=8080, show_default=True, help="The port; 0 for any that is free.")
@click.option("--token", is_flag=True, help="Need a token here, too: keeps other users of this machine out.")
@click.option("--no-open", is_flag=True, help="Do not show the page in a browser.")
@click.option("--concurrency", default=2, show_default=True, help="How many questions are worked on at a time.")
@_APPROVE
@assembling
@guarded
def serve(host: str, port: int, token: bool, no_open: bool, concurrency: int, approve: bool, **options: Any) -> None:
    """Open a page to learn with: ask, watch the program come, change it and run it again.

    A budget is for all questions together.

    Example: code-chains serve --model openai:gpt-5-mini
    """
    if concurrency < 1:
        raise click.BadParameter("at least 1", param_hint="--concurrency")
    from code_chains.page import approve as asked_on_the_page
    from code_chains.page import serve as serve_page

    with _assembled(approve=asked_on_the_page if approve else None, **options) as chain:
        serve_page(chain, host=host, port=port, token=token, concurrency=concurrency, open_browser=not no_open)


# -- for other programs --------------------------------------------------------------------------------------------------


@cli.command()
@assembling
@guarded
def mcp(model: str | None, **options: Any) -> None:
    """Serve the Model Context Protocol on standard input and output.

    run_python runs programs in the sandbox; answer_with_code, where a model is named or there is a key, has the model write
    them. The budget is for all questions together.

    Example: code-chains mcp --seconds 30 --memory 1G
    """
    from langchain_core.runnables import RunnableLambda

    from code_chains.mcp_server import serve
    from code_chains.models import default_model

    chosen = model or default_model()
    answers = bool(model) or chosen != "local"
    tools = (
        f"run_python, answer_with_code with {chosen}" if answers else "run_python (and answer_with_code with --model)"
    )
    asked = chosen if answers else RunnableLambda(str)
    with _assembled(model=asked, **options) as chain:
        click.echo(f"Serving on standard input and output: {tools}", err=True)
        serve(chain, answers=answers)


# -- models --------------------------------------------------------------------------------------------------------------


@cli.group()
def models() -> None:
    """List, fetch and remove embedded models."""


@models.command("list")
@guarded
def list_models() -> None:
    """List the embedded models and where they are kept."""
    from code_chains.weights import CATALOGUE, models_directory

    for weights in CATALOGUE.values():
        state = "installed" if weights.is_installed() else "not fetched yet"
        click.echo(f"{weights.name:<12}{weights.size / 1e6:>7.0f} MB  {state:<16} {weights.title}")
    click.echo(f"kept in {models_directory()}", err=True)


@models.command()
@click.argument("name", default="local:0.5b")
@guarded
def pull(name: str) -> None:
    """Fetch and verify the embedded model NAME."""
    click.echo(str(_weights(name).install()))


@models.command()
@click.argument("name")
@guarded
def remove(name: str) -> None:
    """Delete the embedded model NAME."""
    click.echo("removed" if _weights(name).remove() else "was not there")


def _weights(name: str) -> Any:
    from code_chains.errors import ConfigurationError
    from code_chains.weights import CATALOGUE

    weights = CATALOGUE.get("local:0.5b" if name == "local" else name)
    if weights is None:
        raise ConfigurationError("name", name, f"one of {['local', *CATALOGUE]}")
    return weights


# -- snippets and answers ------------------------------------------------------------------------------------------------


@cli.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@click.option("--into", type=click.Path(file_okay=False), help="Where to keep the index. [default: PATH/.code_chains]")
@guarded
def index(path: str, into: str | None) -> None:
    """Make the code under PATH searchable, or bring its index up to date.

    Python, Markdown, notebooks and other languages; only what changed is read anew.
    """
    from code_chains.progress import working
    from code_chains.snippets import INSIDE, SnippetStore, is_saved

    folder = Path(into or Path(path, INSIDE))
    with working("Reading and embedding what is new"):
        store = SnippetStore.load(folder) if is_saved(folder) else SnippetStore()
        changes = store.update(path)
        store.save(folder)
    counts = ", ".join(f"{count} {name}" for name, count in vars(changes).items())
    click.echo(f"{len(store)} snippets in {folder} ({counts})")


@cli.command()
@click.argument("query")
@click.option(
    "--in", "folder", type=click.Path(exists=True, file_okay=False), help="A folder. [default: the curated ones]"
)
@click.option("-k", "count", default=3, show_default=True, help="How many to show at most.")
@click.option("--code/--no-code", default=True, help="Whether to show the code as well.")
@guarded
def search(query: str, folder: str | None, count: int, code: bool) -> None:
    """Search examples for QUERY, in any language."""
    from code_chains.progress import harmless, working
    from code_chains.snippets import SnippetStore, curated_snippets

    with working("Searching"):
        store = SnippetStore.open(folder) if folder else curated_snippets()
        found = store.similarity_search_with_score(query, k=count)
    for snippet, score in found:
        click.secho(f"{score:.2f}  {harmless(str(snippet.metadata.get('source', snippet.id)))}", bold=True)
        click.echo(f"      {harmless(str(snippet.metadata.get('about', '')))}")
        if code:
            click.echo("".join(f"    {line}\n" for line in harmless(snippet.page_content).splitlines()))
    sys.exit(0 if found else 1)


@cli.group()
def cache() -> None:
    """See or empty what `ask --cache` keeps."""


@cache.command()
@click.option("--path", type=click.Path(dir_okay=False), help="The file. [default: the one in the user's cache]")
@guarded
def stats(path: str | None) -> None:
    """Say how many answers are kept, and where."""
    from code_chains.factory import answers_store

    with answers_store(path) as store:
        kept = store.stats()
        click.echo(f"{kept.entries} answers, {kept.bytes / 1e6:.1f} MB in {store.path}")


@cache.command()
@click.option("--path", type=click.Path(dir_okay=False), help="The file. [default: the one in the user's cache]")
@guarded
def clear(path: str | None) -> None:
    """Forget all answers."""
    from code_chains.factory import answers_store

    with answers_store(path) as store:
        click.echo(f"{store.clear()} answers forgotten")


# -- doctor --------------------------------------------------------------------------------------------------------------


@cli.command()
@guarded
def doctor() -> None:
    """Say what works on this machine: versions, isolation (proven from inside the box) and models."""
    from code_chains.diagnosis import diagnose

    healthy = True
    for section, lines in diagnose():
        click.secho(section, bold=True)
        for ok, line in lines:
            click.echo(f"  {'✓' if ok else '✗'} {line}")
        if section == "Isolation":
            healthy = any(ok for ok, _ in lines)
    sys.exit(0 if healthy else 1)
