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
        ({"output": "Given: 17\nNot given: 3", "code": "print('Not given:', 3)"}, ()),
        ({"output": "Nicht angegeben: 12,5 %"}, ()),
        ({"output": "Not given: the price (per litre)"}, ("the price (per litre)",)),
        ({"output": "Not given: (the price)"}, ("the price",)),
        ({"output": 'Not given: the variable "_rate_"'}, ('the variable "_rate_"',)),
        ({"output": "* `Not given:` the price"}, ("the price",)),
        ({"output": "**Not given**: the price"}, ("the price",)),
        ({"output": "**Not given: the price**"}, ("the price",)),
        ({"output": "Not given:\n- the price\n- the consumption"}, ("the price", "the consumption")),
        ({"reply": "**Not given:**\n\n1. Not given: the price"}, ("the price",)),
        ({"reply": "1. Not given: a price\n2. Not given: a rate"}, ("a price", "a rate")),
        ({"output": "Not given: a price; Not given: a rate"}, ("a price", "a rate")),
        ({"output": "Cannot compute. Not given: the price"}, ("the price",)),
        ({"output": "Error: Not given: the price"}, ("the price",)),
        (
            {"output": "\n".join(f"Not given: item {letter}" for letter in "abcde")},
            tuple(f"item {x}" for x in "abcde"),
        ),
        ({"output": "Δεν δίνεται: η τιμή"}, ("η τιμή",)),
        ({"output": "Non précisé : le prix"}, ("le prix",)),
        ({"output": "Không được cung cấp: giá"}, ("giá",)),
        ({"output": "Not given: `price` and `tax`"}, ("`price` and `tax`",)),
        ({"output": "Not given: nothing."}, ()),
        ({"output": "Not given: 12 of 30"}, ()),
        ({"output": "Not given: 2023"}, ("2023",)),
        ({"reply": "|---|---|\n" * 20_000}, ()),
        ({}, ()),
    ],
)
def test_what_is_missing_is_read(texts: dict[str, str], needs: tuple[str, ...]) -> None:
    assert missing_inputs(**texts) == needs
