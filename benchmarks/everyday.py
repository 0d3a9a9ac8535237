"""430 everyday questions in twelve languages, each with its exact answer and one or two reference programs.

All were written without looking at the code that they measure. Of the first 220, `data/everyday.txt`, every other one served
for development; all others, also those of `everyday_more.txt` and `everyday_third.txt`, are held out: use them to measure,
never to choose a setting. By how many programs an outcome must lead was learnt from the first file and the beginning of the
second, so `UNSEEN` measures verification.

A line `%% id language traits` starts a question, and its text follows;
a line `%= answer` holds an accepted answer as JSON (a text like 2024-03-01 is a date, "yes" and "no" count in
any of the languages, null is "there is none"), and the lines after `%>` are a program that prints it.
The trait `nothing` marks an answer that looks like a failure (none, zero, an error, invalid), `distractor` a
question with values that a correct program leaves out. `python -m benchmarks.everyday` runs all programs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]

FAILED = "traceback (most recent call last)"
MOST_WORDS, MOST_NUMBERS = 60, 12
YES = r"(?<!\w)(yes|true|ja|wahr|oui|vrai|sí|si|sì|vero|sim|да|evet|हाँ|نعم)(?!\w)|はい|是的|^是"
NO = (
    r"(?<!\w)(no|not|false|nein|falsch|nicht|non|faux|não|нет|не|hayır|नहीं|لا|invalid|cannot)(?!\w)"
    r"|n['’]t\b|いいえ|不是|否"
)
NONE = (
    r"(?<!\w)(none|nothing|nobody|no|not|null|nan|nil|empty|keine?|nichts|aucune?|rien|ningun[oa]|nada|нет"
    r"|nessun[oa]?|nenhuma?|yok)(?!\w)|\[ *\]|\{ *\}|set\(\)|n['’]t\b|无|没有|なし"
)
AND = r"(?:and|und|et|y|e|и|ve|和|と|و|और)"
JOINED = re.compile(rf"[\s,;|\[\]{{}}'\"*×x+]*{AND}?[\s'\"]*")
BETWEEN = re.compile(rf"[\W\d_]*(?:{AND}[\W\d_]+)?")
SCALES = {"千": 1e3, "万": 1e4, "億": 1e8, "亿": 1e8, "लाख": 1e5, "thousand": 1e3, "million": 1e6}
SMALL = re.findall("[a-z]+", "zero one two three four five six seven eight nine ten eleven twelve")
MONTHS = (
    "jan ene gen янв oca",
    "feb fév fev фев şub",
    "mar mär мар",
    "apr avr abr апр nis",
    "may mai mag мая май",
    "jun juin giu июн haz",
    "jul juil lug июл tem",
    "aug aoû ago авг ağu",
    "sep set сен eyl",
    "oct okt ott out окт eki",
    "nov ноя kas",
    "dec dez déc dic дек ara",
)
NUMBER = r"(?:(?<![\w)])[-+])?(?<![A-Za-z_\d]){body}(?:e[-+]?\d+)?"
PLAIN, GROUPED, SPACED = (
    re.compile(NUMBER.format(body=body), re.I)
    for body in (
        r"\d+(?:\.\d+)?",
        r"(?<!\d[.,])\d+(?:[.,'’]\d+)*",
        r"(?<!\d[.,])\d{1,3}(?: \d{3})*(?!\d)(?:[.,]\d+)?",
    )
)


@dataclass(frozen=True)
class Everyday:
    """A question, its answer and programs that print the answer; `also` has other accepted answers."""

    id: str
    group: str
    language: str
    query: str
    expected: Value
    programs: tuple[str, ...]
    also: tuple[Value, ...] = ()
    traits: tuple[str, ...] = ()

    def right(self, output: str) -> bool:
        """Return whether the output has the answer, in any notation, and is not a dump of much else."""
        asked = clean(self.query)
        text = clean(output).replace(asked, " ").strip()
        answers = (self.expected, *self.also)
        if not text or (FAILED in text and not str(self.expected).endswith("Error")):
            return False
        if dumped(text, asked, max((written(answer) for answer in answers), key=len)):
            return False
        english = self.language == "en"
        return any(matches(text, asked, answer, english) for answer in answers)


def clean(text: str) -> str:
    """Fold the case, write all digits as 0 to 9, and leave one kind of blank, minus and separator."""
    text = (
        unicodedata.normalize("NFKC", text).casefold().replace("٫", ".").replace("٬", ",").replace("−", "-")
    )
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    text = re.sub(r"[^\S\n]+", " ", text)
    return re.sub(r"(?m)^ | $", "", text).strip()


def written(answer: Value) -> str:
    """Write an answer down the way a person does."""
    if isinstance(answer, list):
        return ", ".join(map(written, answer))
    if isinstance(answer, dict):
        return "\n".join(f"{key}: {written(value)}" for key, value in answer.items())
    return "none" if answer is None else str(answer)


def dumped(text: str, asked: str, answer: str) -> bool:
    """Return whether the text has too many words, or too many numbers that are not in the question."""
    words = max(MOST_WORDS, len(answer.split()))
    most = max(MOST_NUMBERS, len(PLAIN.findall(answer)))
    known = set(PLAIN.findall(asked))
    return len(text.split()) > words or sum(n not in known for n in PLAIN.findall(text)) > most


def matches(text: str, asked: str, answer: Value, english: bool) -> bool:
    """Compare the text with one answer."""
    if answer is None:
        return bool(re.search(NONE, text))
    if isinstance(answer, int | float):
        return has_number(text, asked, answer, english)
    if isinstance(answer, dict):
        return has_pairs(text, answer, english)
    if isinstance(answer, str):
        return has_text(text, answer, english)
    numbers = [item for item in answer if isinstance(item, int | float)]
    if len(numbers) == len(answer):
        return has_numbers(text, numbers, english)
    if numbers:
        return all(matches(text, "", item, english) for item in answer)
    return has_texts(text, [str(item) for item in answer])


def readings(token: str, after: str, english: bool) -> Iterator[float]:
    """Yield what a number can mean: 1.234,5 and 1,234.5 are one number, 1,234 can be two outside English."""
    token = re.sub(r"[ '’]", "", token)
    body, *exponent = token.split("e")
    marks = re.findall(r"[.,]", body)
    forms = set()
    last = marks[-1] if marks else "."
    if marks and (len(marks) == 1 or len(set(marks)) == 2) and marks.count(last) == 1:
        forms.add(re.sub(r"[.,](?=.*[.,])", "", body).replace(",", "."))
    if re.fullmatch(r"[-+]?[1-9]\d{0,2}([.,]\d{2,3})*[.,]\d{3}", body) and len(set(marks)) == 1:
        thousands = re.sub("[.,]", "", body)
        if english and len(marks) == 1:
            forms = {thousands} if last == "," else forms
        else:
            forms.add(thousands)
    scale = next((SCALES[word] for word in SCALES if after.startswith(word)), 1.0)
    for form in forms or {body.replace(",", "")}:
        if re.fullmatch(r"[-+]?\d+(\.\d+)?", form):
            yield float("e".join([form, *exponent])) * scale


def close(value: float, answer: float) -> bool:
    """Return whether a value is the answer to the decimals that the answer has."""
    decimals = len(str(answer).partition(".")[2])
    allowed = 0.006 if decimals <= 2 else 0.6 * 10**-decimals
    return abs(value - answer) <= max(allowed, 1e-6 * abs(answer))


def is_number(match: re.Match[str], answer: float, english: bool) -> bool:
    """Return whether a number that was found can be read as the answer."""
    after = match.string[match.end() :].lstrip()
    return any(close(value, answer) for value in readings(match[0], after, english))


def has_number(text: str, asked: str, answer: float, english: bool) -> bool:
    """Look for the number; if the question has it too, it must be the first or the last one."""
    text = re.sub(r"(?<=\d)(千|万)(?=\d)", r"\1 ", text)
    given = any(is_number(found, answer, english) for found in PLAIN.finditer(asked))
    for pattern in (GROUPED, SPACED):
        found = list(pattern.finditer(text))
        if given and len(found) > 1:
            ends = (found[:2], found[-2:])
            found = [pair[end] for pair, end in zip(ends, (0, 1), strict=True) if apart(text, *pair)]
        if any(is_number(one, answer, english) for one in found):
            return True
    words = re.findall(r"[a-z]+", text)
    return not re.search(r"\d", text) and answer in range(13) and SMALL[int(answer)] in words


def has_numbers(text: str, answers: list[int | float], english: bool) -> bool:
    """Look for the numbers in order, as a list of their own or with words between them."""
    text = re.sub(r"(?m)^\d{1,2}[.)] +(?=\S)", "", text)
    for pattern in (PLAIN, GROUPED):
        found = list(pattern.finditer(text))
        for start in range(len(found) - len(answers) + 1):
            window = found[start : start + len(answers)]
            end = start + len(answers)
            if (
                all(is_number(one, answer, english) for one, answer in zip(window, answers, strict=True))
                and (start == 0 or apart(text, found[start - 1], window[0]))
                and (end == len(found) or apart(text, window[-1], found[end]))
            ):
                return True
    return False


def apart(text: str, one: re.Match[str], other: re.Match[str]) -> bool:
    """Return whether two numbers belong to different statements: more than a comma or a blank is between."""
    return not JOINED.fullmatch(text[one.end() : other.start()])


def has_text(text: str, answer: str, english: bool) -> bool:
    """Look for a date, yes or no, or a text between word boundaries."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", answer):
        return date.fromisoformat(answer) in set(dates(text, english))
    if answer in {"yes", "no"}:
        return [bool(re.search(words, text)) for words in (YES, NO)] == [answer == "yes", answer == "no"]
    return any(
        not re.search(r"\bnot $|['\"], ?['\"]$", text[: found.start()])
        and not re.match(r"['\"], ?['\"]", text[found.end() :])
        for found in re.finditer(bounded(answer), text)
    )


def bounded(answer: str) -> str:
    """Return a pattern for a text; scripts without blanks have no word boundary."""
    answer = clean(answer)
    before, after = (r"(?<!\w)", r"(?!\w)") if ord(answer[0]) < 0x2E80 else ("", "")
    return before + re.escape(answer) + after


def has_texts(text: str, answers: list[str]) -> bool:
    """Look for the texts in order with nothing but separators and numbers between, before and after."""
    gap = f"(?:{BETWEEN.pattern})"
    found = re.search(gap.join(bounded(answer) for answer in answers), text)
    if not found:
        return False
    before, after = text[: found.start()], text[found.end() :]
    if re.search(r"\w['\"]?, ?['\"]?$", before) or re.match(r"['\"]?, ?['\"]?[^\W\d]", after):
        return False
    others = [] if "\n" not in found[0] else (before + "\n" + after).split("\n")
    return not any(1 <= len(re.findall(r"[^\W\d]+", line)) <= 2 and ":" not in line for line in others)


def has_pairs(text: str, answers: dict[str, Value], english: bool) -> bool:
    """Look for each key with its number behind it."""
    for key, answer in answers.items():
        found = re.search(rf"{bounded(key)}[^\w\n]*?({GROUPED.pattern})", text)
        if not found or not isinstance(answer, int | float):
            return False
        if not any(close(value, answer) for value in readings(found[1], "", english)):
            return False
    return True


def dates(text: str, english: bool) -> Iterator[date]:
    """Yield the dates of a text in the usual notations."""
    for number, names in enumerate(MONTHS, 1):
        text = re.sub(rf"(?<!\w)(?:{names.replace(' ', '|')})[^\W\d]*\.?(?!\w)", f"@{number}@", text)
    forms = [
        r"(?P<y>\d{4})[-/.年] ?(?P<m>\d\d?)[-/.月] ?(?P<d>\d\d?)(?!\d)",
        r"(?<!\d)(?P<d>\d\d?)[-/.] ?(?P<m>\d\d?)[-/.] ?(?P<y>\d{4})",
        r"(?<!\d)(?P<d>\d\d?)(?:st|nd|rd|th|er|\.)?(?: of| de)? @(?P<m>\d+)@,?(?: de)? (?P<y>\d{4})",
        r"@(?P<m>\d+)@ (?P<d>\d\d?)(?:st|nd|rd|th)?,? (?P<y>\d{4})",
    ]
    if english:
        forms.append(r"(?<!\d)(?P<m>\d\d?)/(?P<d>\d\d?)/(?P<y>\d{4})")
    for form in forms:
        for found in re.finditer(form, text):
            try:
                yield date(int(found["y"]), int(found["m"]), int(found["d"]))
            except ValueError:
                continue


def parse(text: str) -> Iterator[Everyday]:
    """Read the questions."""
    for block in re.split(r"(?m)^%% ", text)[1:]:
        head, _, body = block.partition("\n")
        name, language, *traits = head.split()
        question, *programs = re.split(r"(?m)^%>\n", body)
        query, *answers = re.split(r"(?m)^%= ", question)
        first, *also = map(json.loads, answers)
        group = name.rpartition("-")[0]
        sources = tuple(program.strip("\n") for program in programs)
        yield Everyday(name, group, language, query.strip(), first, sources, tuple(also), tuple(traits))


FIRST, MORE, THIRD = (
    tuple(parse(Path(__file__).with_name("data").joinpath(name).read_text(encoding="utf-8")))
    for name in ("everyday.txt", "everyday_more.txt", "everyday_third.txt")
)
LEARNT_FROM = 57
"""Questions of the second file from whose outcomes the rules of verification were learnt."""
UNSEEN = (*THIRD, *MORE[LEARNT_FROM:])
QUESTIONS = (*FIRST, *MORE, *THIRD)
DEVELOPMENT, HELD_OUT = FIRST[::2], (*FIRST[1::2], *MORE, *THIRD)


def wrong(answer: Value) -> Iterator[str]:
    """Yield answers that must be refused."""
    yield from ("", "42424242", "blorp", f"{FAILED}:\nNameError: name 'x' is not defined")
    if isinstance(answer, int | float):
        yield from (written(answer + 1), written(answer * 10 + 3), f"-{abs(answer) + 0.02}")
    elif isinstance(answer, list):
        yield written(answer[1:])
        if len({type(item) for item in answer}) == 1:
            yield from map(written, ([*answer, *answer], [*answer[1:], answer[0]]))
    elif isinstance(answer, dict):
        keys = list(answer)
        yield written({key: answer[other] for key, other in pairwise([*keys, keys[0]])})
    elif answer is not None:
        yield {"yes": "no", "no": "yes"}.get(str(answer), "not " + str(answer)[:-1])


def run(program: str) -> str:
    """Run a program by itself and return what it prints, or how it failed."""
    with tempfile.TemporaryDirectory() as empty:
        command = [sys.executable, "-I", "-X", "utf8", "-c", program]
        try:
            done = subprocess.run(command, cwd=empty, capture_output=True, encoding="utf-8", timeout=10)
        except subprocess.TimeoutExpired:
            return "(it took more than 10 seconds)"
    return done.stdout if done.returncode == 0 else f"(it failed) {done.stderr[-300:]}"


def faults(question: Everyday, outputs: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with a question, its answers or its programs."""
    for output in outputs:
        if "(it " in output or not question.right(output):
            yield f"{question.id}: a program printed {output!r}, not {question.expected!r}"
    for answer in (question.expected, *question.also):
        if not question.right(written(answer)):
            yield f"{question.id}: its own answer {answer!r} is refused"
    for answer in wrong(question.expected):
        if question.right(answer):
            yield f"{question.id}: the wrong answer {answer!r} is taken"


def main() -> None:
    """Run all programs, print the counts, and exit with 1 if anything is wrong."""
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda question: tuple(map(run, question.programs)), QUESTIONS))
    found = [fault for each in zip(QUESTIONS, outputs, strict=True) for fault in faults(*each)]
    doubled = [name for name, count in Counter(q.id for q in QUESTIONS).items() if count > 1]
    print(f"{len(QUESTIONS)} questions, {sum(map(len, outputs))} programs")
    for field in ("group", "language"):
        print(field, dict(Counter(getattr(question, field) for question in QUESTIONS)))
    print("trait", dict(Counter(trait for question in QUESTIONS for trait in question.traits)))
    found += [f"{name}: the id occurs more than once" for name in doubled]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
