"""What a program or a model says is missing is read from what was printed, from comments, and from prose."""

from __future__ import annotations

import pytest

from code_chains.verification.provenance.needs import missing_inputs


@pytest.mark.parametrize(
    ("texts", "needs"),
    [
        ({"output": "Not given: diesel price\n"}, ("diesel price",)),
        ({"output": "**Not given:** the file `sales.csv`"}, ("the file `sales.csv`",)),
        ({"output": "NOT GIVEN: Preis\nNot given: Menge"}, ("Preis", "Menge")),
        ({"code": "# Not given: diesel price"}, ("diesel price",)),
        ({"code": "'''\nNot given: the column humidity\n'''"}, ("the column humidity",)),
        ({"reply": "I would like to help.\nNot given: the rate."}, ("the rate.",)),
        ({"code": "# Not given: x\nprint(1)", "output": "1"}, ()),
        ({"output": "\n".join(["Not given: a"] * 9)}, ()),
        ({"output": "What is not given: is lost? 3"}, ()),
        ({}, ()),
    ],
)
def test_what_is_missing_is_read(texts: dict[str, str], needs: tuple[str, ...]) -> None:
    assert missing_inputs(**texts) == needs
