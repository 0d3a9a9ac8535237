"""`code-chains image`: the image in which programs run with Docker and Podman."""

from __future__ import annotations

from pathlib import Path

import click

from code_chains.apps.terminal.cli_options import echo, handle_errors


@click.group()
def image() -> None:
    """Make the image for `--executor docker` and `podman`."""


@image.command()
@click.option("--engine", type=click.Choice(["docker", "podman"]), default="docker", show_default=True)
@click.option("--base", help="Image to build from: Linux with pip and Python 3.11 or newer.")
@click.option(
    "--context", type=click.Path(file_okay=False, path_type=Path), help="Only write its files here."
)
@handle_errors
def build(engine: str, base: str | None, context: Path | None) -> None:
    """Build the image, with this version of the library and libraries for data.

    Example: code-chains image build
    """
    from code_chains.executors.remote.engine import BASE, IMAGE, build_image, write_context

    if context is not None:
        context.mkdir(parents=True, exist_ok=True)
        write_context(context, base or BASE)
        echo(f"Wrote {context}. Build it: {engine} build --tag {IMAGE} {context}", err=True)
        return
    build_image(engine, base=base or BASE)
    echo(f"Built {IMAGE}. Use it: code-chains ask … --executor {engine}", err=True)
