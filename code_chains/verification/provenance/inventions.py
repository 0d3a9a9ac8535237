"""Programs that make up what they show: a text, data or a number that nobody gave. No model is asked.

The idea is that of taint analysis, turned around: what is looked for is an output that nothing given reaches.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from code_chains.analysis.parsing import nodes, parse, tree_of
from code_chains.analysis.references import read
from code_chains.language.vocabulary import pattern, vocabulary
from code_chains.verification.provenance.flow import Flow
from code_chains.verification.provenance.given import Given
from code_chains.verification.provenance.tokens import Kind, Token

_MAX_CODE_CHARS = 20_000
_MAX_NAMED = 3
_WORDS = vocabulary("inventions")
_CHANCE = pattern(_WORDS["chance"])
_MADE_UP = pattern(_WORDS["made_up"])
_PROGRAM = pattern(_WORDS["program"])
_HOW_TO = pattern(_WORDS["how_to"])
_RATE = pattern(_WORDS["rate"], re.IGNORECASE | re.DOTALL)
"""Questions that need a rate."""
_REACHING = re.compile(
    r"\b(?:open|read_\w+|load\w*|input|connect|Connection|glob|listdir|scandir|iterdir|walk|stat|exists"
    r"|import_module|exec|eval|dir|globals|locals|vars|gcf|gca|ExcelFile|ZipFile|imread)\("
)
"""How a program may reach what it does not name."""
_DRAWING = pattern(_WORDS["drawing"])


@dataclass(frozen=True)
class Invention:
    """What a program made up.

    Attributes:
        kind: `text`: nothing was computed; `data`: its data is its own; `assumption`: a number that nobody gave, which a
            model cannot know better at a second attempt; `example`: one from an example of another task; `ignored`: what was
            given does not reach the output.
        reason: What it is, as a sentence.
    """

    kind: Literal["text", "data", "assumption", "example", "ignored"]
    reason: str


def find_invention(
    query: str,
    code: str,
    given: Given,
    *,
    files: Collection[str] = (),
    names: Collection[str] = (),
    is_first: bool = True,
) -> Invention | None:
    """Return what a program makes up; None if nothing is known to be.

    Args:
        query: The question.
        code: The program; of one that does not parse nothing is said.
        given: The numbers and words that it may use.
        files: Names of the files that were given.
        names: Names of variables and tools that were given.
        is_first: Whether nothing was said before the question that the program may compute from instead.

    Example:
        >>> query = "What is the total amount?"
        >>> find_invention(query, "print(sum([100, 217, 340]))", Given(query)).kind
        'data'
    """
    tree = parse(code) if len(code) <= _MAX_CODE_CHARS else None
    if tree is None or asks_for_inventions(query) or _HOW_TO.search(query):
        return None
    if _DRAWING.search(query) and not files:
        return None
    known = [*names, *names_from_elsewhere(code)]
    try:
        shown = Flow(tree, given, files=files, names=known).shown
    except RecursionError:  # Expressions that are nested very deeply.
        return None
    tokens = frozenset[Token]().union(*shown)
    if not shown:
        return None
    allows_chance = _CHANCE.search(query) is not None
    inputs = [*files, *(f"`{name}`" for name in names)]
    # With two numbers, a question may be a calculation of its own.
    needs_input = bool(inputs) and is_first and len(Given(query).stated) < 2
    asks_with_rate = _RATE.search(query) is not None
    return _Decision(tokens, given, inputs, needs_input, allows_chance, asks_with_rate).find()


def asks_for_inventions(query: str) -> bool:
    """Return whether a question asks for something made up, or for a program."""
    return bool(_MADE_UP.search(query) or _PROGRAM.search(query))


def names_from_elsewhere(code: str) -> list[str]:
    """Return the names that a program uses and does not define, such as those of an earlier cell."""
    reading = read(code)
    uses = reading.uses if reading else []
    return [use.name.removeprefix("?:") for use in uses if use.name.startswith("?:")]


def may_reach(code: str, left: str) -> bool:
    """Return whether a program may use what earlier ones left: files, names that it does not define, or those in a text."""
    if names_from_elsewhere(code) or _REACHING.search(code):
        return True
    used = {node.id for node in nodes(tree_of(code), ast.Name)}
    return not used.isdisjoint(re.findall(r"\w+", left))


@dataclass(frozen=True)
class _Decision:
    """Rules about the origins of an output, the surest first."""

    tokens: frozenset[Token]
    given: Given
    inputs: list[str]
    needs_input: bool
    allows_chance: bool
    asks_with_rate: bool

    def find(self) -> Invention | None:
        kinds = {token.kind for token in self.tokens}
        own = self._of(Kind.UNKNOWN, Kind.TEXT, Kind.DATA, Kind.WEAK, Kind.QUANTITY)
        if not kinds & {Kind.COMPUTED, Kind.SOURCE, Kind.RANDOM}:
            # A sentence that repeats the question and adds a word is the model's as well.
            own += [token for token in self._of(Kind.GIVEN) if not self.given.holds_each_word_of(token.shown)]
            return self._uncomputed([*own, *self._of(Kind.DERIVED, Kind.KNOWN)])
        is_unread = self.needs_input and Kind.GIVEN not in kinds
        if self.inputs and Kind.SOURCE not in kinds and (own or is_unread):
            return self._ignored(own)
        if (
            self.allows_chance and Kind.RANDOM in kinds
        ):  # What is drawn from, and how often, are the program's own.
            return None
        has_data = Kind.DATA in kinds and not any(map(_is_number, self._of(Kind.GIVEN)))
        is_made_up = has_data or (Kind.GIVEN not in kinds and self._is_made_up(kinds))
        if is_made_up and Kind.SOURCE not in kinds:
            return self._made_up()
        return self._assumed()

    def _is_made_up(self, kinds: set[Kind]) -> bool:
        """Return whether an output that nothing given reaches is computed from constants or by chance."""
        by_chance = Kind.RANDOM in kinds and not self.allows_chance
        is_weak = Kind.WEAK in kinds and not self.given.stated
        return by_chance or is_weak or bool(kinds & {Kind.DATA, Kind.UNKNOWN, Kind.QUANTITY})

    def _of(self, *kinds: Kind) -> list[Token]:
        return sorted(
            (token for token in self.tokens if token.kind in kinds),
            key=lambda token: (token.line, token.shown),
        )

    def _uncomputed(self, own: list[Token]) -> Invention | None:
        if not own:
            return None
        if self.inputs:
            return self._ignored(own)
        if self._of(Kind.DATA):
            return self._made_up()
        shown = max(own, key=lambda token: len(token.shown)).shown
        return Invention("text", f"Nothing was computed: the program prints what the model wrote: {shown!r}.")

    def _made_up(self) -> Invention:
        chance = self._of(Kind.RANDOM)
        own = self._of(Kind.DATA) or self._of(Kind.UNKNOWN, Kind.QUANTITY, Kind.WEAK)
        what = "random numbers" if chance and not own else _listed(own)
        verb = "was" if len(own) == 1 and "…" not in what else "were"
        return Invention("data", f"The program made up its data: {what} {verb} not given.")

    def _ignored(self, own: list[Token]) -> Invention:
        used = f"; the program used {_listed(own)} of its own" if own else ""
        return Invention("ignored", f"{self.inputs[0]} was given but does not reach the output{used}.")

    def _assumed(self) -> Invention | None:
        doubtful = self._of(Kind.QUANTITY) or self._of(Kind.UNKNOWN) or self._shares()
        if copied := [token for token in doubtful if self.given.is_example(token.shown)]:
            return Invention("example", f"{_listed(copied)} comes from an example, not from the question.")
        if doubtful:
            return Invention("assumption", f"The program assumes {_listed(doubtful)}, which was not given.")
        return None

    def _shares(self) -> list[Token]:
        """Return the common fractions in place of a rate that the question asks with and does not state."""
        weak = self._of(Kind.WEAK) if self.asks_with_rate and not self.given.states_percent else []
        return [token for token in weak if token.shown.startswith("0.")]


def _is_number(token: Token) -> bool:
    return token.shown[:1].isdigit()


def _listed(tokens: Iterable[Token]) -> str:
    named = dict.fromkeys(f"{token.shown} (line {token.line})" for token in tokens)
    return ", ".join(itertools.islice(named, _MAX_NAMED))
