"""`python -m code_chains` and the command `code-chains`."""

from code_chains.apps.terminal.cli import cli


def main() -> None:
    """Run the command line."""
    cli(prog_name="code-chains")


if __name__ == "__main__":
    main()
