"""Messy text files as typed records: a list of invoices, validated, repaired if a field does not fit, and summed up."""

import argparse
import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, Field

from code_chains import create_code_chain

LETTERS = {
    "acme.txt": "ACME GmbH\nInvoice no: A-17\ndated 3 March 2024\nTotal due:  1.250,00 EUR\n",
    "bolt.txt": "Thank you! -- Bolt Ltd.\n#B/204    2024/03/09\nTOTAL ..... EUR 89.90\n",
    "cafe.txt": "Café Luna | No C3 | 11.03.2024 | total 7,5 euros\n",
}


class Invoice(BaseModel):
    """An invoice."""

    number: str
    date: datetime.date
    total: float = Field(gt=0, description="In euros.")


def main(model: str | BaseChatModel = "local") -> None:
    """Extract the invoices, and compute with them."""
    with (
        TemporaryDirectory() as folder,
        create_code_chain(model, answer_type=list[Invoice], interpret=False) as chain,
    ):
        for name, text in LETTERS.items():
            Path(folder, name).write_text(text)
        files = {name: Path(folder, name) for name in LETTERS}
        result = chain.invoke({"query": "Which invoices are in the text files?", "files": files})
    for attempt in result["attempts"]:
        print(f"attempt {attempt.number}: {attempt.verdict.reason}")
    invoices: list[Invoice] = result["value"] or []
    for invoice in sorted(invoices, key=lambda invoice: invoice.date):
        print(f"{invoice.date:%d %b %Y}  {invoice.number:6} {invoice.total:8.2f}")
    print(f"Total: {sum(invoice.total for invoice in invoices):.2f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
