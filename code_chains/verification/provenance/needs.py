"""What a program or a model says is missing, instead of making it up: a line that begins with `Not given:`."""

from __future__ import annotations

import ast
import io
import re
import tokenize

from code_chains.analysis.parsing import parse

NOT_GIVEN = "Not given:"
"""How the line begins; models write what follows in the language of the question."""
_LINE = re.compile(r"^[\W_]*not[ _]given\s*[:：](.+)$", re.IGNORECASE | re.MULTILINE)
_AROUND = " \t*_\"'()"
_MAX_LINES, _MAX_NEEDS, _MAX_CHARS = 4, 5, 200


def missing_inputs(*, output: str = "", code: str = "", reply: str = "") -> tuple[str, ...]:
    r"""Return what is missing, each once; empty if nothing is said to be.

    Of an output only a short one counts, as it may hold the data of the user; of a program its comments, if it has nothing
    else; and of a model the reply without a program.

    Example:
        >>> missing_inputs(output="Not given: the price of diesel\n")
        ('the price of diesel',)
        >>> missing_inputs(code="# Not given: diesel price")
        ('diesel price',)
    """
    is_short = len(output.strip().splitlines()) <= _MAX_LINES
    return _needs_in(
        output if is_short else "", code if _is_only_comments(code) else "", "" if code else reply
    )


def doubted_inputs(code: str) -> tuple[str, ...]:
    r"""Return what comments of a program say is missing, though it goes on without.

    Example:
        >>> doubted_inputs("price = 0  # Not given: the price of diesel\nprint(50 * price)")
        ('the price of diesel',)
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (SyntaxError, tokenize.TokenError):
        return ()
    return _needs_in(*(token.string for token in tokens if token.type == tokenize.COMMENT))


def _needs_in(*texts: str) -> tuple[str, ...]:
    found = (match[1].strip(_AROUND) for text in texts for match in _LINE.finditer(text))
    return tuple(need[:_MAX_CHARS] for need in dict.fromkeys(found))[:_MAX_NEEDS]


def _is_only_comments(code: str) -> bool:
    """Return whether a program has no other statements than texts."""
    tree = parse(code)
    if tree is None or not code.strip():
        return False
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in tree.body)
