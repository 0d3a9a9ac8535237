"""Texts that a program looks up and its files do not have."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from langchain_core.messages import BaseMessage

from code_chains import CodeChain, Repair, create_code_chain
from code_chains.executors import SandboxExecutor
from code_chains.testing import ScriptedModel
from code_chains.verification.sanity.lookups import PROBE, Found, looked_up, missing_texts, read_found

STATIONS = b"Station,Parking\nPierce College,373\nNorth Hollywood,951\nVan Nuys,700\n"
READ = "import pandas as pd\ndf = pd.read_csv('stations.csv')\n"


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("print(df[df['a'] == 'x1'])", ("x1",)),
        ("print(df.loc['x1' == df['a']])", ("x1",)),
        ("rows = [r for r in rows if r['a'].strip() == 'x1']", ("x1",)),
        ("df['a'].str.lower() == 'x1'", ("x1",)),
        ("df[df['a'].isin(['x1', 'x2'])]", ("x1", "x2")),
        ("df[df['a'].str.contains('x1')]", ("x1",)),
        ("df['a'] = 'x1'\nprint(df[df['a'] == 'x1'])", ()),  # It is the program's own.
        ("print(df[df['day'].dt.day_name() == 'Monday'])", ()),
        ("df[df['Year'] == 2024]", ("2024",)),
        ("df[(df['Year'] == 2024) | (df['n'] == 2024)]", ()),
        ("df[df['n'] == 12]", ()),
        ("if mode == 'quick': print(1)", ()),
        ("df[df['a'].str.fullmatch('singles? only')]", ()),
        ("df[df['a'].str.contains('x1|x2')]", ()),
        ("df[~df['a'].isin(['x1'])]", ()),
        ("print('x1' ==", ()),
    ],
)
def test_texts_that_are_compared_with_cells_are_found(code: str, texts: tuple[str, ...]) -> None:
    assert looked_up(code) == texts


@pytest.mark.parametrize(
    ("name", "content", "text", "others"),
    [
        ("a.csv", STATIONS, "Pierce College", None),
        ("a.csv", STATIONS, "Pierce College Station", ["Pierce College"]),
        ("a.csv", STATIONS, "pierce college", ["Pierce College"]),
        ("a.csv", b"name,powers\nZed,Fire and acid rain\n", "Acid rain", ["acid rain"]),
        ("a.csv", STATIONS, "Van Nuis", ["Van Nuys"]),
        ("a.csv", STATIONS, "Atlantis", []),
        ("a.csv", "Städte;x\nKöln;1\n".encode("latin-1"), "Köln", None),
        ("a.csv", "Städte;x\nKöln;1\n".encode("utf-16"), "Köln", None),
        ("a.json", json.dumps([{"city": "Köln"}]).encode(), "Köln", None),
        ("a.parquet", b"PAR1\0\0", "Atlantis", None),  # It cannot be searched.
    ],
)
def test_files_are_searched_for_texts(
    sandbox: SandboxExecutor, name: str, content: bytes, text: str, others: list[str] | None
) -> None:
    variables = {"files": [name], "texts": [text], "whole_cells": [], "any_case": False}
    done = sandbox.run(PROBE, files={name: content}, variables=variables)
    assert done.ok, done.error
    assert read_found(done.output).missing.get(text) == others


@pytest.mark.parametrize(
    ("text", "cells"),
    [("Hollywood", ["North Hollywood"]), ("Van", ["Van Nuys"]), ("Van Nuys", None), ("van nuys", None)],
)
def test_texts_that_stand_within_cells_alone_are_found(
    sandbox: SandboxExecutor, text: str, cells: list[str] | None
) -> None:
    variables = {"files": ["a.csv"], "texts": [text], "whole_cells": [text], "any_case": True}
    done = sandbox.run(PROBE, files={"a.csv": STATIONS}, variables=variables)
    assert read_found(done.output).within.get(text) == cells


def test_a_part_of_a_cell_matters_only_if_nothing_was_found() -> None:
    found = Found({}, {"Essex": ["University of Essex"]})
    assert missing_texts(found, "1964") == ""
    for output in ("None", "No row found for location 'Essex'"):
        assert missing_texts(found, output) == "No cell is `Essex`; there is `University of Essex`."


def test_what_a_cell_must_consist_of_is_told_from_what_it_must_have() -> None:
    code = "df[(df['a'] == 'x1') & df['b'].isin(['x2']) & df['c'].str.contains('x3')]"
    assert (set(looked_up(code)), set(looked_up(code, whole=True))) == ({"x1", "x2", "x3"}, {"x1", "x2"})


def test_a_text_like_no_other_matters_only_if_nothing_was_found() -> None:
    assert missing_texts(Found({"Atlantis": []}, {}), "Parking: 12") == ""
    for output in ("Parking: 0", "Atlantis has 0 spaces", "0 spaces!", "Spaces: []"):
        assert missing_texts(Found({"Atlantis": []}, {}), output) == "`Atlantis` stands in no file."
    for output in ("It has 10 spaces", "0 spaces of 12", "It has 0.5 spaces"):
        assert missing_texts(Found({"Atlantis": []}, {}), output) == ""


@pytest.mark.parametrize(
    "output",
    ["", "[1]", '{"a": 1}', "no JSON", '{"a": [1, 2]}', "[1, 2]", '[{"a": 1}, {}]', '[{"a": [1]}, {}]'],
)
def test_malformed_output_of_the_probe_is_survived(output: str) -> None:
    assert isinstance(missing_texts(read_found(output), ""), str)


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    """Looks up what the question calls the station, until it is told."""

    def reply(messages: list[BaseMessage]) -> str:
        told = "there is `Pierce College`" in messages[-1].text
        name = "Pierce College" if told else "Pierce College Station"
        return f"```python\n{READ}print(df[df['Station'] == '{name}']['Parking'].sum())\n```"

    with create_code_chain(ScriptedModel(reply), executor=sandbox, solve=Repair(2), interpret=False) as chain:
        yield chain


def test_the_model_is_told_what_the_file_calls_it(chain: CodeChain) -> None:
    question = "How many parking spaces does Pierce College Station have?"
    result = chain.invoke({"query": question, "files": {"stations.csv": STATIONS}})
    assert (result["output"], len(result["attempts"])) == ("373", 2)


def test_a_program_that_forgets_to_read_its_file_is_completed(sandbox: SandboxExecutor) -> None:
    model = ScriptedModel(lambda messages: "```python\nprint(df['Parking'].sum())\n```")
    with create_code_chain(model, executor=sandbox, interpret=False) as chain:
        result = chain.invoke({"query": "How many spaces are there?", "files": {"stations.csv": STATIONS}})
    assert (result["output"], len(result["attempts"])) == ("2024", 1)
    assert 'added `df = pd.read_csv("stations.csv")`' in result["attempts"][0].autofixes


def test_two_tables_called_alike_are_not_guessed_at(sandbox: SandboxExecutor) -> None:
    model = ScriptedModel(lambda messages: "```python\nprint(df['Parking'].sum())\n```")
    files = {"stations.csv": STATIONS, "more.csv": STATIONS}
    with create_code_chain(model, executor=sandbox, solve=Repair(1), interpret=False) as chain:
        result = chain.invoke({"query": "How many spaces are there?", "files": files})
    assert not result["verdict"].ok


def test_a_program_that_fails_on_what_it_did_not_find_is_told_so(sandbox: SandboxExecutor) -> None:
    feedback = list[str]()

    def reply(messages: list[BaseMessage]) -> str:
        feedback.append(messages[-1].text)
        return f"```python\n{READ}print(df[df['Station'] == 'Pierce College Station'].index[0])\n```"

    with create_code_chain(ScriptedModel(reply), executor=sandbox, solve=Repair(2), interpret=False) as chain:
        result = chain.invoke({"query": "Where is it?", "files": {"stations.csv": STATIONS}})
    assert not result["verdict"].ok
    assert "A cause may be" in feedback[1]
    assert "there is `Pierce College`" in feedback[1]
