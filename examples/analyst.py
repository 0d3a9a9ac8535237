"""An analyst's app: a messy CSV is looked at before it is summed, and joined with the answer of a SQL tool."""

import argparse
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import StructuredTool

from code_chains import Iterate, create_code_chain

EXPORT = """\
Sales report;;
printed on 3 March 2024;;

customer;date;amount
17;01.03.2024;1.250,50
4;02.03.2024;89,90
17;03.03.2024;-
"""
QUESTION = "What is the total amount in export.csv by name of the customer?"


def create_database() -> sqlite3.Connection:
    """Create the application's database, which programs cannot reach."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute("CREATE TABLE customers (id INTEGER, name TEXT)")
    database.executemany("INSERT INTO customers VALUES (?, ?)", [(17, "Acme"), (4, "Bolt"), (9, "Cafe")])
    database.execute("PRAGMA query_only = ON")
    return database


def main(model: str | BaseChatModel = "local") -> None:
    """Answer a question with the file and the database."""
    database = create_database()

    def query_database(sql: str) -> list[tuple[int | float | str | None, ...]]:
        """Return the rows of a SQLite query over the table customers (id, name)."""
        return database.execute(sql).fetchmany(1000)

    tool = StructuredTool.from_function(query_database, metadata={"read_only": True})
    with (
        TemporaryDirectory() as folder,
        create_code_chain(model, tools=[tool], solve=Iterate(when="auto")) as chain,
    ):
        path = Path(folder, "export.csv")
        path.write_text(EXPORT)
        result = chain.invoke({"query": QUESTION, "files": [path]})
    for attempt in result["attempts"]:
        print(f"cell {attempt.number}: {attempt.summary}")
        for call in attempt.tool_calls:
            print(f"  {call.name}({call.arguments['sql']!r}) -> {call.summary}")
    print(f"{result['output']}\n{result['verdict'].status}: {result['answer']}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
