"""Origins of what a program shows, and the names by which functions and quantities are known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from code_chains.analysis.dotted_names import words
from code_chains.language.vocabulary import pattern, vocabulary
from code_chains.verification.provenance.given import Origin

CARRYING = words("str repr format join ascii print pprint dumps int float round Decimal rstrip strip title")
"""Functions whose results are what they are given, in another form."""
ASKING_ABOUT_FILES = frozenset(
    ["exists", "isfile", "is_file", "isdir", "is_dir", "basename", "makedirs", "mkdir", "seed"]
)
SHOWING = words(
    "print pprint display final_answer write writelines writerow writerows dump to_csv to_excel to_json to_html to_markdown"
    " to_parquet bar barh plot scatter pie hist hist2d boxplot imshow fill_between stackplot line area step"
    " errorbar violinplot heatmap barplot lineplot scatterplot histplot show write_text write_bytes info"
)
"""Functions that show what they are given, or write it into a file."""
LABELLING = words(
    "xlabel ylabel title suptitle set_title set_xlabel set_ylabel legend figure savefig tight_layout grid xticks yticks"
    " annotate colorbar rcParams style"
)
"""Functions whose arguments describe a figure."""
PATHS = frozenset(["Path", "PurePath"])
OPENING = words(
    "glob iglob rglob listdir scandir iterdir walk argv stdin input eval exec globals locals vars import_module __import__"
)
"""Names by which a program may reach what was given without naming it."""
KEEPING = words(
    "extract extractall unpack_archive copy copyfile copy2 move to_sql executemany write writelines to_csv dump"
)
"""Functions by which files of the program's own come to hold what they are given."""
READING = re.compile(r"open|connect|load\w*|read_\w+|reader")
PARSING = words("split loads StringIO fromstring literal_eval splitlines")
"""Functions that take a text apart."""
RANDOM = re.compile(r"(?:^|\.)(?:random|secrets|faker|rng|default_rng|uuid4|urandom)\b", re.IGNORECASE)
TABLE = re.compile(r"[,;|\t{\[].*\n.*[,;|\t}\]]|\n.*\n", re.DOTALL)
"""A text of several lines with separators, or of many lines: data in a program."""
DATE = re.compile(r"[12]\d{3}-\d{1,2}(?:-\d{1,2})?")
_WORDS = vocabulary("tokens")
_QUANTITY = pattern(_WORDS["quantity"])
"""Names of quantities that only the world knows."""
_AVERAGE = re.compile(r"(?:^|_)(?:per|avg|average|mean)_|_per$", re.IGNORECASE)
"""Names of averages, which may follow from what is given."""
_OF_UNITS = re.compile(
    r"(?:second|minute|hour|day|week|month|quarter|year|period|payment|inch|inches|feet|foot|yard|ounce|oz|gram|cent|m|cm|mm|ml|kg|bit|byte|egg|item)s?"
    r"_?(?:per|in)_?(?:a_)?(?:minute|hour|day|week|month|year|foot|feet|yard|mile|pound|dollar|liter|litre|km|m|kg|byte|dozen)"
    r"|per_(?:dozen|pair|couple|duo)"
    r"|(?:lit(?:re|er)|pint|quart|cup|ml|cl)s?_?(?:per|in)_?(?:an?_|uk_|us_|imp(?:erial)?_)*(?:gallon|pint|quart|lit(?:re|er)|cup)"
    r"|[cdkm]?m[23]_?(?:per|in)_?(?:an?_)?(?:[cdk]?m[23]|hectare|ha|acre|lit(?:re|er))",
    re.IGNORECASE,
)
"""Names of factors between units."""


class Kind(Enum):
    """Kinds of origins."""

    SOURCE = "a file or a variable that was given"
    PATH = "the name of a file that was given"
    GIVEN = "a value of the question"
    DERIVED = "a number that follows from those of the question"
    KNOWN = "a constant that everybody knows"
    UNKNOWN = "a number of the program's own"
    WEAK = "a number that many programs have"
    QUANTITY = "a number of the program's own for a quantity that only the world knows"
    TEXT = "a text of the program's own"
    DATA = "data of the program's own"
    RANDOM = "chance"
    COMPUTED = "a computation"


@dataclass(frozen=True)
class Token:
    """One origin: its kind, how the program spells it, and its line."""

    kind: Kind
    shown: str = ""
    line: int = 0


Tokens = frozenset[Token]
NONE: Tokens = frozenset()
COMPUTED: Tokens = frozenset([Token(Kind.COMPUTED)])
SOURCE: Tokens = frozenset([Token(Kind.SOURCE)])


def names_quantity(name: str, origin: Origin) -> bool:
    """Return whether a number of an origin stands under the name of a quantity that only the world knows."""
    if _OF_UNITS.search(name):
        return False
    if _QUANTITY.search(name):
        return origin is not Origin.GIVEN
    return _AVERAGE.search(name) is not None and origin in (Origin.WEAK, Origin.UNKNOWN, Origin.KNOWN)
