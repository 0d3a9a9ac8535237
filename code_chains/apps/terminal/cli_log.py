"""Commands for what was asked before: the log of questions, and saved conversations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from code_chains.apps.terminal.cli_options import echo, handle_errors
from code_chains.records.printable import escape_invisible, strip_control_chars

if TYPE_CHECKING:
    from code_chains.apps.terminal.question_log import LoggedConversation


@click.group(invoke_without_command=True)
@click.option("-n", "count", default=10, show_default=True, type=click.IntRange(1), help="How many to list.")
@click.pass_context
@handle_errors
def log(context: click.Context, count: int) -> None:
    """List the last questions of `ask`; show or delete them.

    `log show 1` shows the latest one, `log clear` deletes all.

    Only you can read the log. Turn it off with --no-log, or for all questions with CODE_CHAINS_LOG=0.
    """
    from code_chains.apps.terminal.question_log import QuestionLog

    if context.invoked_subcommand:
        return
    with QuestionLog() as questions:
        conversations = questions.conversations()
    for number, conversation in reversed(list(enumerate(reversed(conversations[-count:]), 1))):
        echo(f"{number:>3}  {conversation}")
    if not conversations:
        echo("No questions are logged yet.", err=True)


@log.command()
@click.argument("number", default=1, type=click.IntRange(1))
@click.option("--json", "as_json", is_flag=True, help="Print the turns as JSON.")
@handle_errors
def show(number: int, as_json: bool) -> None:
    """Show question NUMBER, counted from the latest, as Markdown."""
    from code_chains.apps.terminal.question_log import QuestionLog
    from code_chains.conversations.export import to_markdown

    with QuestionLog() as questions:
        conversations = questions.conversations()
    if number > len(conversations):
        count = f"only {len(conversations)}" if conversations else "no questions"
        raise click.BadParameter(f"the log has {count}", param_hint="NUMBER")
    turns = conversations[-number].turns
    if as_json:
        click.echo(
            escape_invisible(json.dumps([turn.to_dict() for turn in turns], ensure_ascii=False, indent=2))
        )
    else:
        click.echo(strip_control_chars(to_markdown(turns)), nl=False)


@log.command()
@click.confirmation_option("--yes", prompt="Delete all logged questions?")
@handle_errors
def clear() -> None:
    """Delete all logged questions."""
    from code_chains.apps.terminal.question_log import QuestionLog

    with QuestionLog() as questions:
        echo(f"{questions.clear()} questions deleted")


def manage_conversations(deleted: str | None) -> None:
    """List the saved conversations, or delete one.

    Raises:
        InputError: There is no conversation with this name.
    """
    from code_chains.apps.terminal.chat import open_store
    from code_chains.apps.terminal.question_log import list_conversations
    from code_chains.conversations.memory import ConversationMemory
    from code_chains.errors import InputError

    with open_store() as store:
        memory = ConversationMemory(store)
        conversations = list_conversations(memory)
        if deleted is None:
            _list(conversations)
            return
        names = [conversation.name for conversation in conversations]
        if deleted not in names:
            known = ", ".join(names) or "none"
            raise InputError(f"There is no conversation {deleted!r}. Saved conversations: {known}.")
        memory.clear(deleted)
        echo(f"Deleted: {deleted}")


def _list(conversations: list[LoggedConversation]) -> None:
    width = max((len(conversation.name) for conversation in conversations), default=0)
    for conversation in conversations:
        echo(f"{conversation.name:<{min(width, 40)}}  {conversation}")
    if not conversations:
        echo("No conversations are saved. Start one with --session NAME.", err=True)
