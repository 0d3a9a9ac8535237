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
        ({"code": "# Not given: diesel price\npass"}, ("diesel price",)),
        ({"code": "litres = 5\n# Not given: diesel price"}, ("diesel price",)),
        ({"code": "Not given: the price of diesel"}, ("the price of diesel",)),
        ({"output": "`Not given: the price`", "code": "print('`Not given: the price`')"}, ("the price",)),
        ({"output": "Nicht gegeben: der Preis"}, ("der Preis",)),
        ({"output": "No dado: el precio"}, ("el precio",)),
        ({"output": "Not given: phone", "code": "print(open('note.txt').read())"}, ()),
        (
            {
                "output": "Not given: the birthday",
                "code": "print([l for l in open('n.txt') if 'Not given' in l])",
            },
            (),
        ),
        ({"output": "与えられていません: 料金"}, ("料金",)),
        ({"output": "Не указана: цена"}, ("цена",)),
        ({"output": "Not given: 2", "query": "How many are 'not given'?"}, ()),
        ({"code": "# Not given: nothing\nprint(35)"}, ()),
        ({"code": "# Not given: nothing"}, ()),
        ({"output": "\n".join(["Not given: a"] * 9)}, ()),
        ({"output": "What is not given: is lost? 3"}, ()),
        ({}, ()),
    ],
)
def test_what_is_missing_is_read(texts: dict[str, str], needs: tuple[str, ...]) -> None:
    assert missing_inputs(**texts) == needs
