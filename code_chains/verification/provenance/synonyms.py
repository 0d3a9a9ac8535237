"""Words for what tables hold, which mean the same: a question and the columns of its data may use different ones."""

from __future__ import annotations

import re

from code_chains.analysis.dotted_names import words
from code_chains.inputs.text import folded

_GROUPS = (
    r"revenue|sales|turnover|income|earning|takings|umsatz|einnahm|erlos|ingreso|venta|recette|chiffre|ricav|fattur|receita",
    r"price|cost|fare|fee|quote|preis|kosten|prix|precio|prezz|preco|importe|betrag|montant",
    r"profit|surplus|gain|margin|gewinn|benefici|benefice|utile|lucro",
    r"salar|wage|pay|income|gehalt|lohn|sueldo|stipend",
    r"\bages?\b|(?<![a-z])age(?![a-z])|alter|edad|idade|\beta\b|born|birth",
    r"grade|marks?\b|score|point|\bnot[ae]|punkt|punto|resultado?|result",
    r"rating|stars?\b|score|bewertung|stern",
    r"temperatur|temp|deg|tm(?:ax|in|ean)|celsius|fahrenheit|°",
    r"rain|precip|niederschlag|regen|lluvia|pluie|pioggia|chuva",
    r"population|inhabitant|people|resident|einwohner|habitant|abitant",
    r"server|host|machine|node|instance|computer",
    r"customer|client|visitor|guest|buyer|shopper|attend|kunde|besuch",
    r"team|club|side|squad|mannschaft|verein|equip|squadra",
    r"student|pupil|learner|schuler|alumn|eleve",
    r"employee|staff|worker|headcount|mitarbeiter|emplead|employe|dipendent",
    r"length|duration|nights|days|dauer",
    r"weight|mass|gewicht|peso|poids|kgs?\b",
    r"size|bytes|area|grosse|flache|taille|talla|superficie",
    r"water|m3|m³|lit(?:er|re)|wasser|agua|eau\b",
    r"power|leistung|potencia|puissance|watts?\b|kw\b",
    r"energy|energie|electricity|strom|kwh",
    r"quantit|qty|amount|counts?\b|number|units|menge|anzahl|cantidad|quantite",
)
_SYNONYMS = tuple((re.compile(rf"(?<![a-z])(?:{group})"), re.compile(group)) for group in _GROUPS)
"""What a word of a question begins with, and what stands in names of columns, which may join words."""
_STATES = (
    words(
        "open pending outstanding unpaid unresolved unsettled unfinished due overdue new todo waiting still owe owed owes"
        " collect"
    ),
    words("closed done paid settled resolved solved finished completed complete fulfilled delivered shipped"),
    words("cancelled canceled called withdrawn void dropped abandoned refunded failed"),
)
"""Words for the state that a thing is in, which mean the same."""
_NOT = words("not nobody never no t yet without isn wasn hasn haven")


def is_state(value: str, asked: str) -> bool:
    """Return whether a question has another word for a state.

    Example:
        >>> is_state("open", "the total of the unpaid invoices"), is_state("open", "the total of the invoices")
        (True, False)
    """
    asked_words = set(re.findall(r"[a-z]+", asked))
    is_open = asked_words & _NOT and asked_words & _STATES[1] and value in _STATES[0]
    return bool(is_open) or any(value in states and states & asked_words for states in _STATES)


def has_synonym(word: str, text: str) -> bool:
    """Return whether a text has another word for what a word means, also in the larger languages of Europe.

    Args:
        word: An English noun, folded.
        text: What it may stand in, folded.

    Example:
        >>> has_synonym("revenue", "region, umsatz"), has_synonym("humidity", "day, rain_mm")
        (True, False)
    """
    return any(begins.match(word) and stands.search(text) for begins, stands in _SYNONYMS)


def holds(asked: str, part: str) -> bool:
    """Return whether a question has a part of a name, within a word unless it is short: no `age` in `average`."""
    return part in asked if len(part) > 3 else re.search(rf"\b{part}", asked) is not None


def parts(name: str) -> list[str]:
    """Return the longer words of the name of a column, without their endings."""
    return [stem(word) for word in re.findall(r"[^\W\d_]{3,}", folded(name))]


def stem(word: str) -> str:
    """Return a word without its ending."""
    word = re.sub(r"(?<=[a-z]{2})ies$", "y", folded(word))
    return word[: max(4, len(word) - 2)]
