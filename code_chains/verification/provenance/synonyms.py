"""Words for what tables hold, which mean the same: a question and the columns of its data may use different ones."""

from __future__ import annotations

import re

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
    r"customer|client|visitor|guest|buyer|shopper|attend|kunde|besuch",
    r"team|club|side|squad|mannschaft|verein|equip|squadra",
    r"student|pupil|learner|schuler|alumn|eleve",
    r"employee|staff|worker|headcount|mitarbeiter|emplead|employe|dipendent",
    r"length|duration|nights|days|dauer",
    r"weight|mass|gewicht|peso|poids|kgs?\b",
    r"size|area|grosse|flache|taille|talla|superficie",
    r"water|m3|m³|lit(?:er|re)|wasser|agua|eau\b",
    r"quantit|qty|amount|counts?\b|number|units|menge|anzahl|cantidad|quantite",
)
_SYNONYMS = tuple((re.compile(rf"(?<![a-z])(?:{group})"), re.compile(group)) for group in _GROUPS)
"""What a word of a question begins with, and what stands in names of columns, which may join words."""


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
