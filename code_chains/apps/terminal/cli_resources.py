"""Commands for what chains use: models, snippets, cached answers, and the machine's isolation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from code_chains.apps.chain_options import check_model_is_named
from code_chains.apps.terminal.cli_options import echo, handle_errors
from code_chains.records.printable import strip_control_chars

if TYPE_CHECKING:
    from code_chains.models.hub import HubFile
    from code_chains.models.weights import Weights

_MAX_UNREAD_NAMES = 10

# -- models --------------------------------------------------------------------------------------------------


@click.group()
def models() -> None:
    """List, download and remove embedded models."""


@models.command("list")
@handle_errors
def list_models() -> None:
    """List the embedded models, and where they are stored.

    Says which of them `local` is, and why.
    """
    from code_chains.models.choice import local_choice
    from code_chains.models.hub import installed_hub_files
    from code_chains.models.weights import CATALOGUE, models_directory

    for weights in CATALOGUE.values():
        state = "installed" if weights.is_installed() else "not downloaded"
        echo(f"{weights.name:<12}{weights.size / 1e6:>7.0f} MB  {state:<16} {weights.title}")
    for file in installed_hub_files():
        echo(f"{file.name}  {file.path.stat().st_size / 1e6:.0f} MB  installed")
    echo(str(local_choice()))
    echo(f"stored in {models_directory()}", err=True)


@models.command()
@click.argument("name", default="local")
@handle_errors
def pull(name: str) -> None:
    """Download and verify the embedded model NAME.

    NAME is local (unless given), local:0.5b, local:1.5b or hf:OWNER/REPO:FILE.
    """
    echo(str(find_weights(name).install()))


@models.command()
@click.argument("name")
@handle_errors
def remove(name: str) -> None:
    """Delete the embedded model NAME."""
    click.echo("removed" if find_weights(name).remove() else "not installed")


def find_weights(name: str) -> Weights | HubFile:
    """Return the embedded model with a name.

    Raises:
        ConfigurationError: There is no such model.
    """
    from code_chains.errors import ConfigurationError
    from code_chains.models.choice import local_choice
    from code_chains.models.hub import PREFIX, HubFile
    from code_chains.models.weights import CATALOGUE

    if name.startswith(PREFIX):
        return HubFile.parse(name)
    if name == "local":
        choice = local_choice()
        echo(str(choice), err=True)
        return choice.weights
    if (weights := CATALOGUE.get(name)) is None:
        raise ConfigurationError("name", name, f"one of {['local', *CATALOGUE]}, or hf:OWNER/REPO:FILE")
    return weights


# -- snippets ------------------------------------------------------------------------------------------------


@click.command()
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--into", type=click.Path(file_okay=False), help="Folder of the index. [default: in the user's cache]"
)
@handle_errors
def index(path: str, into: str | None) -> None:
    """Index code and documentation under PATH.

    Reads Python, Markdown, reStructuredText, HTML, text, notebooks and other languages; only changed files are embedded
    again. Files that are not read are named.
    """
    from code_chains.apps.terminal.progress import spinner
    from code_chains.retrieval.loaders import unread_files
    from code_chains.retrieval.persistence import is_saved
    from code_chains.retrieval.store import SnippetStore

    with spinner("Reading and embedding changes"):
        if into is None:
            store = SnippetStore.cached(path)
        else:
            store = SnippetStore.load(into) if is_saved(Path(into)) else SnippetStore()
        changes = store.update(path)
        folder = Path(into or store.folder or path)
        store.save(folder)
    counts = ", ".join(f"{count} {name}" for name, count in vars(changes).items())
    echo(f"{len(store)} snippets in {folder} ({counts})")
    unread = [f"{name}: {reason}" for name, reason in unread_files(path).items()]
    if unread:
        more = f" and {len(unread) - _MAX_UNREAD_NAMES} more" if len(unread) > _MAX_UNREAD_NAMES else ""
        echo(f"Not read: {'; '.join(unread[:_MAX_UNREAD_NAMES])}{more}")


@click.command()
@click.argument("query")
@click.option(
    "--in",
    "folder",
    type=click.Path(exists=True, file_okay=False),
    help="A folder. [default: the curated snippets]",
)
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=3, show_default=True, help="Maximum number of results."
)
@click.option("--code/--no-code", default=True, help="Whether to show the code as well.")
@handle_errors
def search(query: str, folder: str | None, count: int, code: bool) -> None:
    """Search snippets for QUERY, in any language."""
    from code_chains.apps.terminal.progress import spinner
    from code_chains.inputs import check_query
    from code_chains.retrieval.curated import curated_snippets
    from code_chains.retrieval.store import SnippetStore

    check_query(query)
    with spinner("Searching"):
        store = SnippetStore.open(folder) if folder else curated_snippets()
        matches = store.similarity_search_with_score(query, k=count)
    for snippet, score in matches:
        source = strip_control_chars(str(snippet.metadata.get("source", snippet.id)))
        click.secho(f"{score:.2f}  {source}", bold=True)
        click.echo(f"      {strip_control_chars(str(snippet.metadata.get('about', '')))}")
        if code:
            lines = strip_control_chars(snippet.page_content).splitlines()
            click.echo("".join(f"    {line}\n" for line in lines))
    sys.exit(0 if matches else 1)


# -- cached answers ------------------------------------------------------------------------------------------


@click.group()
def cache() -> None:
    """Inspect or clear the cache of `ask --cache`."""


_path_option = click.option(
    "--path", type=click.Path(dir_okay=False), help="The file. [default: the one in the user's cache]"
)


@cache.command()
@_path_option
@handle_errors
def stats(path: str | None) -> None:
    """Show the number of cached answers, and where they are stored."""
    from code_chains.assembly.arguments import answers_store

    with answers_store(path) as store:
        size = store.stats()
        echo(f"{_counted(size.entries, 'answer')}, {size.bytes / 1e6:.1f} MB in {store.path}")


@cache.command()
@_path_option
@handle_errors
def clear(path: str | None) -> None:
    """Delete all cached answers."""
    from code_chains.assembly.arguments import answers_store

    with answers_store(path) as store:
        click.echo(f"{_counted(store.clear(), 'answer')} deleted")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# -- the shell -----------------------------------------------------------------------------------------------


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    Example: eval "$(code-chains completion bash)"
    """
    complete = get_completion_class(shell)
    assert complete is not None
    root = context.find_root()
    click.echo(complete(root.command, {}, "code-chains", "_CODE_CHAINS_COMPLETE").source())


# -- diagnosis -----------------------------------------------------------------------------------------------


@click.command()
@click.option("-m", "--model", help="Name of a model to call.")
@click.option("--base-url", help="Base URL of its OpenAI-compatible server.")
@handle_errors
def doctor(model: str | None, base_url: str | None) -> None:
    """Check versions, isolation and models of this machine.

    Isolation is proven by a probe inside the sandbox. With --model or --base-url, this model is called.

    Example: code-chains doctor --base-url http://localhost:11434/v1 -m llama3.2
    """
    from code_chains.apps.terminal.doctor import diagnose

    check_model_is_named(model, base_url)
    is_healthy = True
    for section, checks in diagnose(model, base_url):
        click.secho(section, bold=True)
        for ok, message in checks:
            echo(f"  {'✓' if ok else '✗'} {message}")
        if section in ("Isolation", "Model"):
            is_healthy = is_healthy and any(ok for ok, _ in checks)
    sys.exit(0 if is_healthy else 1)
