"""Read a lesson: Markdown with front matter, a heading for each step, and fenced blocks whose info string names a role.

Nothing of the file is executed. All mistakes are reported at once, each with its line.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from code_chains.analysis.parsing import UNREADABLE, syntax_tree
from code_chains.errors import CodeChainsError, InputError, brief
from code_chains.executors.inputs import check_name
from code_chains.executors.limits import Limits
from code_chains.language import check_language
from code_chains.lessons.expected import REVEALS, read_tests
from code_chains.lessons.lesson import Block, Lesson, Step, Wrong
from code_chains.lessons.rules import read_rules
from code_chains.lessons.tasks import TASKS, Task
from code_chains.storage import foreign
from code_chains.storage.foreign_yaml import YamlError, parse_yaml

ROLES = ("starter", "setup", "examples", "tests", "hint", "solution", "wrong", "rules", *TASKS)
SECRET_ROLES = ("tests", "hint", "solution", "wrong")
"""Roles that a learner's copy lacks."""
_MAX_BYTES, _MAX_CODE_CHARS, _MAX_STEPS, _MAX_TITLE_CHARS = 1 << 20, 200_000, 1000, 200
"""Of a file; of its blocks that are analysed, together; how many steps; and of a heading."""
_MAX_PROBLEMS, _MAX_NESTING = 10, 6
"""Each line of a paragraph is tried at each level of lists and quotations around it."""
_KEYS = ("title", "language", "level", "imports", "limits", "reveals", "hints", "files", "released")
_DEFAULT_SECONDS = 2
_MESSAGE = re.compile(r"#\s*message:\s*(.*)\n?", re.IGNORECASE)
_HTML = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]*)?/?>|<!(?!--)|<\?")
_NOT_HTML = re.compile(r"`[^`]*`|\]\(<[^<>]*>")
"""Code, and addresses of links with blanks."""


@dataclass
class Fence:
    """A fenced block of a lesson's file.

    Attributes:
        language: Its first word.
        role: Its second word; empty for a block that belongs to the text.
        code: Its content.
        line: The line where its content begins.
        lines: Its first line, and the one after its last, from 0.
    """

    language: str
    role: str
    code: str
    line: int
    lines: tuple[int, int]


@dataclass
class _Draft:
    """A step while it is read."""

    title: str
    line: int
    first: int
    fences: list[Fence] = field(default_factory=list)


def read_lesson(source: str | Path, *, below: Path | None = None) -> Lesson:
    """Read a lesson.

    Args:
        source: The path of its file, or its text.
        below: The folder of lessons that the file lies in, out of which no link leads; None if its user has named it.

    Raises:
        InputError: It is no lesson; the message has a line for each mistake.
    """
    if isinstance(source, Path):
        return replace(_Reader(read_text(source, below=below), source).lesson(), path=source)
    return _Reader(source, None).lesson()


def read_text(path: Path, *, below: Path | None = None) -> str:
    """Return the text of a lesson's file.

    Raises:
        InputError: It cannot be read, is too long, or is not in UTF-8.
    """
    return foreign.read_text(path, _MAX_BYTES, below=below).replace("\r\n", "\n")


def without_comments(text: str) -> str:
    """Return text without comments of HTML, in linear time; one that does not end is none."""
    parts, start = list[str](), 0
    while (opening := text.find("<!--", start)) >= 0 and (end := text.find("-->", opening + 4)) >= 0:
        parts.append(text[start:opening])
        start = end + 3
    return "".join([*parts, text[start:]])


def split_front_matter(text: str) -> tuple[str, int]:
    """Return the front matter, and the number of lines with it."""
    match = re.match(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", text, re.DOTALL | re.MULTILINE)
    return (match[1], match[0].count("\n")) if match else ("", 0)


def read_fences(text: str) -> list[Token]:
    """Return what Markdown is made of, without what is within paragraphs."""
    return MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).disable("inline").parse(text)


def as_fence(token: Token) -> Fence:
    """Return a fence, with its role."""
    first, last = token.map or (0, 0)
    words = token.info.split()
    return Fence(words[0] if words else "", " ".join(words[1:]), token.content, first + 2, (first, last))


class _Reader:
    """Reads one lesson, and collects the mistakes in it."""

    def __init__(self, text: str, path: Path | None) -> None:
        self._text, self._path = text, path
        self._problems = list[tuple[int, str]]()
        self._is_released, self._language = False, "en"
        self._programs = list[str]()
        """The setups and solutions so far."""

    def lesson(self) -> Lesson:
        """Return the lesson."""
        if len(self._text) > _MAX_BYTES:
            raise InputError(f"The lesson has more than {_MAX_BYTES >> 20} MB. Split it.")
        front, skipped = split_front_matter(self._text)
        if not skipped:
            self._problem(1, "there is no front matter: begin with ---, `title: …` and ---")
        values = self._front_matter(front)
        self._is_released = bool(values.get("is_released"))
        self._language = str(values.get("language", "en"))
        # Invariant: lines stay those of the file.
        lines = self._text.split("\n")
        body = "\n" * skipped + "\n".join(lines[skipped:])
        intro, drafts = self._split(body)
        if sum(len(fence.code) for draft in (intro, *drafts) for fence in draft.fences) > _MAX_CODE_CHARS:
            raise InputError(f"The blocks have more than {_MAX_CODE_CHARS:,} characters. Split the lesson.")
        if len(drafts) > _MAX_STEPS:
            raise InputError(f"The lesson has more than {_MAX_STEPS} steps. Split it.")
        ends = [*(draft.first for draft in drafts), len(lines)]
        lines = body.split("\n")
        setups = [fence for fence in intro.fences if fence.role == "setup"]
        self._programs += [fence.code for fence in setups]
        numbered = enumerate(zip(drafts, ends[1:], strict=True), 1)
        steps = tuple(self._step(number, draft, lines, end) for number, (draft, end) in numbered)
        blocks = list(map(self._block, setups))
        for fence in intro.fences:
            if fence.role not in ("", "setup"):
                self._problem(fence.line - 1, f"a {fence.role!r} block belongs below the heading of a step")
        self._raise()
        if not values.get("is_released"):
            self._require_tests(steps)
        self._raise()
        digest = hashlib.sha256(self._text.encode()).hexdigest()[:16]
        setup = blocks[0] if blocks else None
        text = _prose(intro, lines, ends[0])
        return Lesson(**values, text=text, setup=setup, steps=steps, digest=digest)

    def _problem(self, line: int, text: str) -> None:
        self._problems.append((line, text))

    def _raise(self) -> None:
        if not self._problems:
            return
        shown = [f"line {line}: {text}" for line, text in sorted(self._problems)[:_MAX_PROBLEMS]]
        name = self._path.name if self._path else "The lesson"
        if hidden := len(self._problems) - len(shown):
            shown.append(f"and {hidden} more")
        raise InputError(f"{name} is not a lesson yet:\n" + "\n".join(shown))

    def _attempt(self, line: int, read: Callable[[], Any]) -> Any:
        """Return what a function returns; None, and a problem, if it refuses its input."""
        try:
            return read()
        except CodeChainsError as error:
            self._problem(line, str(error).strip())
        return None

    # -- front matter ----------------------------------------------------------------------------------------

    def _front_matter(self, front: str) -> dict[str, Any]:
        try:
            given, lines = parse_yaml(front)
        except YamlError as error:
            self._problem(error.line + 2, f"the front matter is not YAML: {error}")
            return {"title": ""}
        if not isinstance(given or {}, dict):
            self._problem(2, "the front matter must be lines of `key: value`")
            return {"title": ""}
        values: dict[str, Any] = {"title": ""}
        for key, value in (given or {}).items():
            line = lines.get(key, 0) + 2
            if key not in _KEYS:
                self._problem(line, f"unknown key {brief(key)}{_similar(key, _KEYS)}")
                continue
            values |= self._attempt(line, lambda key=key, value=value: self._value(key, value)) or {}  # type: ignore[misc]
        if not values["title"]:
            self._problem(1, "the front matter has no title")
        return values

    def _value(self, key: str, value: Any) -> dict[str, Any]:
        """Return the field of a lesson that a key of the front matter sets."""
        match key:
            case "title" | "level":
                return {key: _text(key, value)}
            case "language":
                return {key: check_language(value)}
            case "imports":
                return {key: tuple(_texts(key, value))}
            case "limits":
                return {key: Limits(**{"seconds": _DEFAULT_SECONDS, **_mapping(key, value, _LIMITS)})}
            case "reveals":
                return {key: _choice(key, value, REVEALS)}
            case "hints":
                return _hints(_mapping(key, value, ("quota", "solution")))
            case "files":
                return {key: dict(map(self._file, _texts(key, value)))}
            case _:
                return {"is_released": _flag(key, value)}

    def _file(self, name: str) -> tuple[str, Path]:
        folder = (self._path.parent if self._path else Path()).absolute()
        try:
            path = foreign.find_below(folder, name)
        except FileNotFoundError:
            raise InputError(f"there is no file {brief(name)} beside the lesson") from None
        except OSError as error:
            raise InputError(f"{brief(name)} is not beside the lesson: {error.strerror}") from error
        return check_name(name), path

    # -- steps -----------------------------------------------------------------------------------------------

    def _split(self, body: str) -> tuple[_Draft, list[_Draft]]:
        """Return the introduction, and the steps."""
        intro, drafts, tokens = _Draft("", 1, 0), list[_Draft](), read_fences(body)
        for index, token in enumerate(tokens):
            first = (token.map or (0, 0))[0]
            if token.type == "heading_open" and token.tag == "h2":
                title = tokens[index + 1].content.strip()
                if len(title) > _MAX_TITLE_CHARS:
                    self._problem(first + 1, f"the heading has more than {_MAX_TITLE_CHARS} characters")
                drafts.append(_Draft(title[:_MAX_TITLE_CHARS], first + 1, first))
            elif token.type == "fence":
                fence = as_fence(token)
                (drafts[-1] if drafts else intro).fences.append(fence)
                self._check_fence(fence)
            elif token.type in ("html_block", "inline"):
                self._check_html(token)
        if not drafts:
            self._problem(1, "there are no steps: begin each with a heading, `## Title`")
        return intro, drafts

    def _check_fence(self, fence: Fence) -> None:
        if fence.role and fence.role not in ROLES:
            near = _similar(fence.role, ROLES)
            self._problem(
                fence.line - 1, f"unknown role {brief(fence.role)}{near}; roles: {', '.join(ROLES)}"
            )
        elif fence.role in ("starter", "setup", "solution", "wrong") and fence.language != "python":
            self._problem(fence.line - 1, f"a {fence.role!r} block must begin with ```python {fence.role}")
        elif fence.role in ("tests", "examples") and fence.language not in ("python", "yaml"):
            self._problem(fence.line - 1, f"write {fence.role!r} in python or yaml: ```python {fence.role}")

    def _check_html(self, token: Token) -> None:
        text = _NOT_HTML.sub("", without_comments(token.content))
        match = _HTML.search(text)
        found = match[0] if match else text.strip() if token.type == "html_block" else ""
        if found:
            line = (token.map or (0, 0))[0] + 1
            self._problem(line, f"HTML is not shown to learners: {found[:40]!r}. Write Markdown.")

    def _step(self, number: int, draft: _Draft, lines: list[str], end: int) -> Step:
        of = defaultdict[str, list[Fence]](list)
        for fence in draft.fences:
            of[fence.role].append(fence)
        for role in set(ROLES) - {"hint", "wrong"}:
            for fence in of[role][1:]:
                self._problem(fence.line - 1, f"a second {role!r} block in one step; join them")
        one = {role: next(iter(of[role]), None) for role in ROLES}
        task = self._task(draft)
        blocks = {role: self._block(one[role]) for role in ("starter", "setup", "solution")}
        if task and task.solution and not blocks["solution"]:
            blocks["solution"] = Block(task.solution, draft.line)
        is_program = task is None or task.form == "program"
        self._programs += [
            block.code for block in (blocks["setup"], blocks["solution"] if is_program else None) if block
        ]
        solution = self._programs if blocks["solution"] else ()
        rules = one["rules"]
        checks, worth = (
            rules and self._attempt(rules.line, lambda: read_rules(rules.code, self._language))
        ) or ((), None)
        return Step(
            number,
            draft.title,
            draft.line,
            text=_prose(draft, lines, end, task),
            demos=tuple(Block(fence.code, fence.line) for fence in of[""] if fence.language == "python"),
            examples=self._tests(one["examples"], solution),
            tests=self._tests(one["tests"], solution),
            hints=tuple(fence.code.strip() for fence in of["hint"]),
            wrong=tuple(map(_wrong, of["wrong"])),
            checks=checks,
            task=task,
            worth=worth,
            **blocks,
        )

    def _task(self, draft: _Draft) -> Task | None:
        """Return what a step asks for where no test decides; None if tests do."""
        fences = [fence for fence in draft.fences if fence.role in TASKS]
        if not fences:
            return None
        for fence in fences[1:]:
            self._problem(
                fence.line - 1, f"{fence.role!r} beside {fences[0].role!r} in one step: make two steps"
            )
        fence, kind = fences[0], TASKS[fences[0].role]
        for other in draft.fences:
            is_test = other.role in ("tests", "examples")
            if (is_test and not kind.has_tests) or other.role == "starter":
                self._problem(other.line - 1, f"{other.role!r} beside {fence.role!r}, which needs none")
        read = partial(kind.read, fence.language, fence.code, is_released=self._is_released)
        return self._attempt(fence.line, read)  # type: ignore[no-any-return]

    def _block(self, fence: Fence | None) -> Block | None:
        if fence is None:
            return None
        try:
            syntax_tree(fence.code)
        except UNREADABLE as error:
            line = fence.line - 1 + (getattr(error, "lineno", None) or 1)
            self._problem(line, f"the {fence.role} is not Python: {getattr(error, 'msg', error)}")
        return Block(fence.code, fence.line)

    def _tests(self, fence: Fence | None, solution: Sequence[str]) -> Any:
        if fence is None:
            return None
        is_yaml = fence.language == "yaml"
        read = partial(read_tests, fence.code, fence.line, is_yaml=is_yaml, solution=solution)
        return self._attempt(fence.line, read)

    def _require_tests(self, steps: Collection[Step]) -> None:
        for step in steps:
            if not (step.tests or step.examples or step.task) and (
                step.starter or step.solution or step.wrong
            ):
                self._problem(step.line, f"step {step.title!r} has a program, but no tests and no examples")
        if not any(step.is_exercise for step in steps):
            self._problem(1, "no step has tests: add a block ```python tests")


def _prose(draft: _Draft, lines: list[str], end: int, task: Task | None = None) -> str:
    """Return what a learner reads of a part: its text, and what its task shows, without blocks with a role and comments."""
    first = draft.first + bool(draft.title)
    kept = lines[first:end]
    for fence in draft.fences:
        if fence.role:
            start, stop = (line - first for line in fence.lines)
            shown = task.shown if task and fence.role == task.role else ""
            kept[start:stop] = [shown, *[""] * (stop - start - 1)]
    text = without_comments("\n".join(kept))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _wrong(fence: Fence) -> Wrong:
    """Return a wrong program, whose first line may say what a learner must be told."""
    match = _MESSAGE.match(fence.code)
    return Wrong(fence.code, fence.line, match[1].strip() if match else "")


# -- values --------------------------------------------------------------------------------------------------

_LIMITS = ("seconds", "memory", "output", "processes", "disk", "files")


def _hints(values: Mapping[str, Any]) -> dict[str, Any]:
    quota = values.get("quota", 5)
    if not isinstance(quota, int) or isinstance(quota, bool) or quota < 0:
        raise InputError(f"hints.quota must be a whole number, not {brief(quota)}")
    return {"quota": quota, "gives_solution": _flag("hints.solution", values.get("solution", False))}


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{key} must be text, not {brief(value)}")
    return value.strip()


def _texts(key: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{key} must be a list such as [math, random], not {brief(value)}")
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{key} must be true or false, not {brief(value)}")
    return value


def _choice(key: str, value: Any, choices: Collection[str]) -> str:
    if value not in choices:
        raise InputError(f"{key} must be one of {', '.join(map(repr, choices))}, not {brief(value)}")
    return str(value)


def _mapping(key: str, value: Any, keys: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{key} must have keys, such as {{{next(iter(keys))}: 5}}, not {brief(value)}")
    if unknown := [name for name in value if name not in keys]:
        raise InputError(f"{key} has no key {brief(unknown[0])}{_similar(unknown[0], keys)}")
    return value


def _similar(word: object, words: Collection[str]) -> str:
    near = difflib.get_close_matches(str(word)[:_MAX_TITLE_CHARS], words, 1) if isinstance(word, str) else ()
    return f"; did you mean {near[0]!r}?" if near else ""
