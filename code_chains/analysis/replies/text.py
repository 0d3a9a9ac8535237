"""The visible text of a reply: without thoughts, chat-template tokens and invented further turns."""

from __future__ import annotations

import re
from bisect import bisect

_MAX_REPLY_CHARS = 200_000
_KIND = r"[\w:]{0,20}(?:think|thought|reasoning|reflection|scratchpad)[\w:]{0,10}"
_LOUD = r"[A-Z_]{0,20}(?:THINK|REASONING)[A-Z_]{0,10}"
"""In brackets, where a list of Python has lower case."""
OPENS_THOUGHT = re.compile(rf"(?i:[<◁](?!\|end)\|?{_KIND}\|?[>▷])|\[{_LOUD}\]")
CLOSES_THOUGHT = re.compile(rf"(?i:[<◁](?:/|\|end_){_KIND}\|?[>▷])|\[/{_LOUD}\]")
MAX_TAG_CHARS = 50
_THOUGHT = re.compile(
    rf"^[ \t]*(?:{OPENS_THOUGHT.pattern}).*?(?:{CLOSES_THOUGHT.pattern}|\Z)", re.DOTALL | re.MULTILINE
)
_CLOSED = re.compile(
    rf"^[ \t]*(?:{CLOSES_THOUGHT.pattern})|(?:{CLOSES_THOUGHT.pattern})(?=[ \t]*(?:\n|`{{3}}|\Z))",
    re.MULTILINE,
)
"""What ends a thought that the template of the chat has opened; within a line of a program it is part of that."""
_CHANNEL = re.compile(r"<\|channel\|>([^<]*)(?:<\|constrain\|>[^<]*)?<\|message\|>")
"""The head of a message in the format of gpt-oss (Harmony)."""
_HEADER = re.compile(
    # Possessive, as two runs of spaces beside each other would try each way to share them.
    r"\A\s*+(?:(?:<s>|<bos>)\s*+)?\[INST\](?s:.*?)\[/INST\][ \t]*|\A\s*+(?:<s>|<bos>)\s*|"
    r"<\|start_header_id\|>\s*\w+\s*<\|end_header_id\|>|<start_of_turn>\s*\w+\n|\A\s*<\|im_start\|>\w+\n"
    r"|<\|(?:python_tag|begin_of_text|start\|>assistant)\|?>?"
)
_END = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eom_id|endoftext|end_of_text|end|return|call)\|>|<end_of_turn>|<end_code>|</s>"
    r"|<｜end▁of▁sentence｜>|<eos>"
)
"""What ends a turn: whatever follows was invented."""
_NEXT_TURN = re.compile(r"^(?:#{1,4} ?)?(?:Human|User)[ \t]*:(?![^\n]*=)", re.MULTILINE)
"""What begins the next turn of the user; with an equals sign it could be a variable with its type."""
_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_QUOTES = "'\"`"


def visible_text(reply: str) -> str:
    """Return the beginning of a reply, up to 200,000 characters, without thoughts and the heads of messages."""
    text = reply[:_MAX_REPLY_CHARS].replace("\r\n", "\n").replace("\r", "\n")
    return _HEADER.sub("", without_thoughts(_final_message(text))).lstrip("\ufeff")


def without_thoughts(text: str) -> str:
    """Return the text outside of thoughts in any notation; nothing of one that is never closed."""
    text = _THOUGHT.sub("", text)
    ends = [closed.end() for closed in _CLOSED.finditer(text)]
    return text[ends[-1] :] if ends else text


def _final_message(text: str) -> str:
    """Return the last message that is no analysis; the whole text if it has no channels."""
    heads = list(_CHANNEL.finditer(text))
    if not heads:
        return text
    spoken = [head for head in heads if not head[1].strip().startswith("analysis")]
    if not spoken:
        return text[: heads[0].start()]
    start = spoken[-1].end()
    following = next((head.start() for head in heads if head.start() > start), len(text))
    return text[start:following]


def first_turn(text: str) -> str:
    """Return the text up to the first token that ends a turn; one in quotes, or in code, belongs to a program."""
    fences = list(map(re.Match.start, _FENCE.finditer(text)))
    for end in _END.finditer(text):
        before = bisect(fences, end.start())
        line = text[text.rfind("\n", 0, end.start()) + 1 : end.start()]
        if before % 2 and before < len(fences) and line.strip():
            continue  # Within a line of a closed fence.
        is_quoted = (
            text[end.start() - 1 : end.start()] in _QUOTES and text[end.end() : end.end() + 1] in _QUOTES
        )
        if text[: end.start()].strip() and not (is_quoted and end.start() and end.end() < len(text)):
            return text[: end.start()]
    return text


def without_next_turn(text: str) -> str:
    """Return the text before a line that begins with "Human:" or "User:"."""
    return _NEXT_TURN.split(text, maxsplit=1)[0]
