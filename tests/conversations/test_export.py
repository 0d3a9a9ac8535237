"""A session's turns as something to keep: what is exported is valid, runs, and stays in its folder."""

from __future__ import annotations

import base64
import subprocess
import sys
import warnings
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from nbclient import NotebookClient
from pydantic import JsonValue

from code_chains.assembly.factory import create_code_chain
from code_chains.chains.base import State
from code_chains.conversations.export import export, to_markdown, to_notebook, to_script
from code_chains.conversations.memory import ConversationMemory
from code_chains.conversations.replay import Inputs
from code_chains.conversations.turns import Turns
from code_chains.errors import InputError
from code_chains.executors import SandboxExecutor
from code_chains.records.filenames import safe_name
from code_chains.state import Artifact, DisplayData, Turn
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import ROOT

PROGRAMS = {
    "What is in the file?": "import pandas as pd\nsales = pd.read_csv('sales.csv')\nsales",
    "How much is it?": "print('Regions:', len(sales))\nsales['amount'].sum()",
    "What if it grows by that factor?": "[float(x) for x in sales['amount'] * factor]",
    "What is missing?": "sales['nothing']",
    "Plot it.": "import matplotlib.pyplot as plt\nsales.plot.bar(x='region')\nplt.show()",
    "Which region is best?": "sales.loc[sales['amount'].idxmax(), 'region']",
}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def turn(query: str = "?", code: str = "", output: str = "", **rest: Any) -> Turn:
    return Turn("1", query, code=code, output=output, **rest)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> list[Turn]:
    """A session with a CSV file, a frame, a variable, a failure and a plot."""
    data = tmp_path_factory.mktemp("data") / "sales.csv"
    data.write_text("region,amount\nnorth,10\nsouth,32\n")

    def script(messages: list[Any]) -> str:
        prompt = "\n".join(message.text for message in messages)
        question = max(PROGRAMS, key=prompt.rfind)
        return PROGRAMS[question] if asks_for_code(messages) else f"*Done*: {question}"

    memory = ConversationMemory()
    with (
        SandboxExecutor() as sandbox,
        create_code_chain(ScriptedModel(script), executor=sandbox, memory=memory) as chain,
    ):
        for number, query in enumerate(PROGRAMS):
            inputs: State = {"files": {"sales.csv": data}} if number == 0 else {}
            inputs |= {"variables": {"factor": 1.5}} if number == 2 else {}
            chain.invoke({"query": query, "session_id": "ann", **inputs})
    return memory.turns("ann", artifacts=True)


@pytest.mark.slow
def test_the_fixture_has_the_expected_turns(session: list[Turn]) -> None:
    assert [turn.status for turn in session] == ["unverified"] * 3 + ["failed"] + ["unverified"] * 2
    assert any(artifact.media_type == "image/png" for artifact in session[4].artifacts)


# -- notebooks ---------------------------------------------------------------------------------------------------------


def test_a_notebook_keeps_tables_as_html_beside_what_was_printed() -> None:
    bundle = (DisplayData("text/html", "<table>"), DisplayData("text/plain", "a b"))
    outputs = to_notebook([turn(code="x", output="Rows:\na b", display_data=bundle)]).cells[2].outputs
    assert [output.output_type for output in outputs] == ["stream", "display_data"]
    assert (outputs[0].text, outputs[1].data["text/plain"]) == ("Rows:\n", "a b")
    assert "&lt;table&gt;" in outputs[1].data["text/html"]


def test_no_script_of_a_program_is_in_an_exported_notebook() -> None:
    script = "<script>alert(1)</script>"
    bundle = tuple(DisplayData(f"text/{kind}", script) for kind in ("html", "markdown", "x-latex"))
    data = to_notebook([turn(code="x", display_data=bundle)]).cells[2].outputs[0].data
    assert data["text/html"].startswith("<iframe sandbox ")
    assert not any("<script" in text for text in data.values())


def test_a_turn_remembers_how_its_table_is_displayed(session: list[Turn]) -> None:
    assert [data.media_type for data in session[0].display_data] == [
        "text/html",
        "text/csv",
        "text/plain",
    ]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_notebook_reproduces_the_output_of_the_session(session: list[Turn], tmp_path: Path) -> None:
    paths = export(session, tmp_path / "sales.ipynb")
    assert [path.name for path in paths] == ["sales.ipynb", "sales.csv"]
    notebook = nbformat.read(paths[0], as_version=4)  # type: ignore[no-untyped-call]
    before = [_outputs(cell) for cell in notebook.cells if cell.cell_type == "code"]
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert [_outputs(cell) for cell in notebook.cells if cell.cell_type == "code"] == before
    assert [images for _, images in before] == [0, 0, 0, 1, 0]


@pytest.mark.soak
@pytest.mark.local_model
@pytest.mark.timeout(900)
def test_a_notebook_of_five_spanish_turns_runs(tmp_path: Path) -> None:
    example = ROOT / "examples" / "conversation_es.py"
    output = subprocess.run(
        [sys.executable, example, tmp_path], capture_output=True, text=True, check=True
    ).stdout
    notebook = nbformat.read(tmp_path / "tutorial.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert output.count("- ") >= 5
    assert sum(images for _, images in map(_outputs, notebook.cells) if images) == 1


def _outputs(cell: nbformat.NotebookNode) -> tuple[str, int]:
    """Return the text that a cell displays, and the number of its images."""
    texts, images = [], 0
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        images += "image/png" in data
        if "image/png" not in data:
            texts.append(output.get("text") or data.get("text/plain", ""))
    return "\n".join(text.strip("\n") for text in texts), images


def test_a_notebook_contains_the_session_in_order(session: list[Turn]) -> None:
    notebook = to_notebook(session, title="Sales")
    sources = [cell.source for cell in notebook.cells]
    assert sources[0] == "# Sales"
    assert [source[3:] for source in sources if source.startswith("## ")] == list(PROGRAMS)
    assert sources.count(f"{PROGRAMS['How much is it?']}\n") == 1
    assert "factor = 1.5\n\n[float(x)" in "".join(sources)
    assert notebook.metadata.kernelspec.name == "python3"


def test_a_failed_turn_is_included_but_does_not_run(session: list[Turn]) -> None:
    kinds = [cell.cell_type for cell in to_notebook(session[3:4]).cells]
    assert kinds == ["markdown", "markdown", "markdown"]
    assert all(line.startswith("#") for line in to_script(session).splitlines() if "nothing" in line)


TEXT = st.text(st.characters(), max_size=60) | st.lists(
    st.sampled_from(
        ["```", "~~~", "`", "\n", "\r", "# ", "> ", "<!--", "- ", "    ", "x", "'''", "\\", "\0", "\u2028"]
    )
).map("".join)
TURNS = st.lists(
    st.builds(
        Turn,
        st.just("1"),
        TEXT,
        TEXT,
        TEXT,
        TEXT,
        st.sampled_from(["failed", "verified"]),
        artifacts=st.just((Artifact.of("a.png", "image/png", PNG),)),
    ),
    max_size=3,
)


@settings(deadline=None)
@given(TURNS)
def test_any_text_makes_a_valid_notebook(turns: list[Turn]) -> None:
    text = nbformat.writes(to_notebook(turns))  # type: ignore[no-untyped-call]
    text.encode()
    nbformat.validate(nbformat.reads(text, as_version=4))  # type: ignore[no-untyped-call]


# -- Markdown ----------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(TURNS)
def test_any_text_keeps_the_parts_of_markdown_separate(turns: list[Turn]) -> None:
    text = to_markdown(turns)
    text.encode()
    tokens = MarkdownIt().parse(text)
    assert sum(
        token.type == "heading_open" and token.tag == "h2" and token.level == 0 for token in tokens
    ) >= len(turns)
    fences = iter([token.content for token in tokens if token.type == "fence" and token.level == 0])
    for turn in turns:
        if turn.code.strip() and turn.status != "failed":
            assert _normal(turn.code) in map(_normal, fences)
            assert not turn.output.strip() or _normal(turn.output) in map(_normal, fences)


def _normal(text: str) -> str:
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return text.strip("\n").rstrip().replace("\0", "\N{REPLACEMENT CHARACTER}")


def test_the_layout_of_markdown() -> None:
    image = Artifact.of("plots/of it.png", "image/png", PNG)
    text = to_markdown([turn("Sum?", "x = 1 + 1\nx", "2", answer="It is **2**.", artifacts=(image,))])
    assert text == (
        "## Sum?\n\n```python\nx = 1 + 1\nx\n```\n\nOutput:\n\n```text\n2\n```\n\n"
        "![plots-of-it.png](plots-of-it.png)\n\nIt is **2**.\n"
    )


def test_a_long_question_is_a_short_heading_followed_by_its_text() -> None:
    text = to_markdown([turn(f"{'word ' * 50}\nand more")])
    assert text.splitlines()[0].endswith(" …")
    assert len(text.splitlines()[0]) < 110
    assert "> and more" in text


# -- scripts -----------------------------------------------------------------------------------------------------------


def run(path: Path) -> str:
    process = subprocess.run(
        [sys.executable, path.name], cwd=path.parent, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.slow
def test_a_script_reproduces_the_output_of_the_session(session: list[Turn], tmp_path: Path) -> None:
    script, *_ = export(session, tmp_path / "sales.py")
    assert run(script) == "".join(
        f"{turn.output}\n" for turn in session if turn.output and turn.status != "failed"
    )
    assert all(f"# {query}\n" in script.read_text() for query in PROGRAMS)


@pytest.mark.parametrize(
    ("code", "output", "line"),
    [
        ("sum(range(1, 6))", "15", "print(sum(range(1, 6)))"),
        ("x = 1; x", "1", "x = 1; print(x)"),
        ("1, 2", "(1, 2)", "print((1, 2))"),
        ("'é', 'text'\n'é' + 'ü'", "'éü'", "print(repr('é' + 'ü'))"),
        ("x = [2]\nx.pop()", "2", "if (_ := x.pop()) is not None:"),
        ("def f(): print(3)\nf()  # it prints", "3", "if (_ := f()) is not None:"),
        ("(5 +\n 6  # eleven\n)", "11", "print((5 +"),
        ("print(4)", "4", "print(4)"),
        ("print(4)\n[].append(5)", "4", "[].append(5)"),
        ("x = 5\nprint(x)\nx = 6", "5", "x = 6"),
        ("print(1)\nx = []; x.sort()", "1", "if (_ := x.sort()) is not None:"),
        ("from __future__ import annotations\nx: nonsense = 1\nx", "1", "from __future__ import annotations"),
        ("@", "", "# @"),
        ("import asyncio\nawait asyncio.sleep(0)", "", "# await asyncio.sleep(0)"),
    ],
)
def test_a_script_prints_what_a_notebook_displays(code: str, output: str, line: str, tmp_path: Path) -> None:
    script = to_script([turn(code="x = 0"), turn(code=code, output=output)])
    assert any(candidate.startswith(line) for candidate in script.splitlines())
    (tmp_path / "script.py").write_text(script)
    assert run(tmp_path / "script.py").rstrip() == output


@settings(deadline=None)
@given(TURNS)
def test_any_text_makes_a_valid_script(turns: list[Turn]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # Programs may hold what Python only warns of, such as an unknown escape.
        compile(to_script(turns).encode(), "script.py", "exec")


def test_a_question_cannot_declare_the_encoding() -> None:
    compile(to_script([turn("coding: nonsense\ncoding: utf-7", "x = 'é'")]).encode(), "script.py", "exec")


VALUES: list[JsonValue] = [
    None,
    True,
    3,
    -0.5,
    float("inf"),
    "it's\n\ud800",
    [1, [float("-inf")]],
    {"a b": {"c": []}},
]


@pytest.mark.parametrize("value", VALUES)
def test_variables_become_assignments(value: JsonValue) -> None:
    names: dict[str, Any] = {}
    exec(to_script([turn(code="pass", variables={"variable": value})]), names)
    assert names["variable"] == value


# -- files -------------------------------------------------------------------------------------------------------------


def test_images_are_written_beside_markdown_under_unique_names(tmp_path: Path) -> None:
    def with_image(
        data: bytes, *, name: str = "a/../../b".replace("..", "c"), kind: str = "image/png"
    ) -> Turn:
        return turn(code="plot()", artifacts=(Artifact.of(name, kind, data),))

    turns = [
        with_image(b"1"),
        with_image(b"2"),
        with_image(b"1"),
        with_image(b"3", name=".bashrc", kind="image/gif"),
    ]
    paths = export(turns, tmp_path / "plots.md")
    images = {path.name: path.read_bytes() for path in paths[1:]}
    assert images == {"a-c-c-b.png": b"1", "a-c-c-b-2.png": b"2", "bashrc.gif": b"3"}
    assert all(f"]({name})" in paths[0].read_text() for name in images)
    assert export(turns, tmp_path / "plots.md") == [tmp_path / "plots.md"]


def test_other_files_are_never_changed(tmp_path: Path, sales: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"other")
    export([turn(code="1", artifacts=(Artifact.of("a.png", "image/png", PNG),))], folder / "x.md")
    assert ((folder / "a.png").read_bytes(), (folder / "a-2.png").read_bytes()) == (b"other", PNG)
    (folder / "sales.csv").write_text("other")
    with pytest.raises(InputError, match=r"sales\.csv.* another file"):
        export([turn(code="1", files={"sales.csv": str(sales)})], folder / "y.ipynb")
    assert sorted(path.name for path in folder.iterdir()) == ["a-2.png", "a.png", "sales.csv", "x.md"]


def test_inputs_with_the_same_name_and_different_contents_are_refused(tmp_path: Path, sales: Path) -> None:
    other = tmp_path / "other"
    other.write_text("else")
    turns = [turn(code="1", files={"in.csv": str(sales)}), turn(code="2", files={"in.csv": str(other)})]
    with pytest.raises(InputError, match=r"in\.csv"):
        export(turns, tmp_path / "x.py")
    assert not (tmp_path / "x.py").exists()


def test_existing_inputs_stay_and_missing_ones_are_skipped(tmp_path: Path, sales: Path) -> None:
    files = {"sales.csv": str(sales), "deep/copy.csv": str(sales), "gone.csv": str(tmp_path / "gone.csv")}
    paths = export([turn(code="1", files=files)], tmp_path / "x.py")
    assert paths == [tmp_path / "x.py", tmp_path / "deep" / "copy.csv"]


GIVEN: dict[str, tuple[str, dict[str, Any]]] = {
    "sum": (
        "print(len(open('d2.csv').read()), total)",
        {"files": {"d2.csv": b"abc"}, "variables": {"total": 2}},
    ),
    "frame": ("print(df['a'].sum())", {"variables": {"df": pd.DataFrame({"a": [1, 2], "b": ["x", None]})}}),
    "day": (
        "print(day.year, sorted(s), t)",
        {"variables": {"day": date(2026, 1, 31), "s": {2, 1}, "t": ((), (1,), b"x", Decimal("0.1"))}},
    ),
}


@pytest.fixture(scope="module")
def given_turns() -> list[Turn]:
    def script(messages: list[Any]) -> str:
        asked = max(GIVEN, key="\n".join(message.text for message in messages).rfind)
        return GIVEN[asked][0] if asks_for_code(messages) else "Done."

    with create_code_chain(ScriptedModel(script), executor=SandboxExecutor()) as chain:
        for query, (_, inputs) in GIVEN.items():
            assert chain.invoke({"query": query, "session_id": "ann", **inputs})["verdict"].ok
        return chain.turns("ann")


@pytest.mark.slow
def test_what_was_uploaded_or_given_as_a_variable_is_there_for_an_exported_script(
    given_turns: list[Turn], tmp_path: Path
) -> None:
    paths = export(given_turns, tmp_path / "x.py")
    assert {path.name for path in paths} == {"x.py", "d2.csv", "df.parquet"}
    run = [sys.executable, "x.py"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines(), done.stderr) == ([each.output.strip() for each in given_turns], "")
    assert export(given_turns, tmp_path / "x.py") == [tmp_path / "x.py"]


def test_what_was_not_kept_is_named_before_the_program(tmp_path: Path) -> None:
    kept = Inputs({}, {"a": np.array([1]), "z": datetime(2026, 1, 1, tzinfo=UTC)}, missing={"df", "gone.csv"})
    gone = turn(code="print(1)", files={"gone.csv": str(tmp_path / "gone.csv")})
    export(Turns([gone], lambda _: kept), tmp_path / "x.py")
    text = (tmp_path / "x.py").read_text()
    for what in (
        "'gone.csv' was given, and is not there",
        "'df', too large",
        "'a', ndarray",
        "'z', datetime",
    ):
        assert f"# The file {what}" in text or f"# {what}" in text
    exec(text, {})


def test_an_upload_of_the_same_name_and_another_content_is_named(tmp_path: Path) -> None:
    turns = [turn(code=f"print({number})", files={"in.csv": f"/gone/{number}"}) for number in (1, 2)]
    contents = iter([b"1", b"2"])
    export(Turns(turns, lambda _: Inputs({"in.csv": next(contents)}, {})), tmp_path / "x.py")
    assert (tmp_path / "in.csv").read_bytes() == b"1"
    assert (tmp_path / "x.py").read_text().count("'in.csv' had another content here") == 1


@pytest.mark.parametrize("turns", ["ann", None, {"a": 1}, ["ann"]])
def test_what_is_no_turn_is_not_exported(turns: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'chain\.turns\("ann"\)'):
        export(turns, tmp_path / "x.py")


def test_an_export_replaces_the_last_one_but_no_input(tmp_path: Path, sales: Path) -> None:
    for code in ("1", "2"):
        export([turn(code=code)], tmp_path / "x.py")
    assert "2" in (tmp_path / "x.py").read_text()
    notes = tmp_path / "notes.md"
    notes.write_text("mine")
    for name in ("notes.md", "other.md"):
        with pytest.raises(InputError, match="a program read"):
            export([turn(code="1", files={name: str(notes)})], notes)
    assert notes.read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["../a.png", "/a.png", "a/../../b.png", "..", "", "a\n.png", "\u202egnp.png"]
)
def test_names_outside_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        safe_name(name)
    with pytest.raises(InputError, match="cannot be called"):
        export([turn(code="1", artifacts=(Artifact.of(name, "image/png", PNG),))], tmp_path / "x.md")
    with pytest.raises(InputError, match="cannot be called"):
        export([turn(code="1", files={name: __file__})], tmp_path / "x.py")
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=300))
def test_a_safe_name_has_no_folder(name: str) -> None:
    try:
        safe = safe_name(name)
    except InputError:
        return
    assert (Path("folder") / safe).resolve().parent == Path("folder").resolve()
    assert not safe.startswith((".", "-"))
    assert 0 < len(safe.encode()) <= 200


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("x.txt", "must end with .ipynb"),
        ("x", "must end with"),
        ("no/x.md", "does not exist"),
        ("d.md", "folder"),
    ],
)
def test_an_invalid_target_is_refused(path: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "d.md").mkdir()
    with pytest.raises(InputError, match=message):
        export([turn(code="1")], tmp_path / path)


def test_nothing_to_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to export"):
        export([], tmp_path / "x.md")


def test_a_number_without_a_text_is_named_and_names_are_no_code(tmp_path: Path) -> None:
    kept = Inputs({}, {"n": 10**5000}, missing={"x\nprint('INJECTED')"})
    export(Turns([turn(code="print(1)")], lambda _: kept), tmp_path / "x.py")
    text = (tmp_path / "x.py").read_text()
    assert "# 'n', int, was given" in text
    assert "\nprint('INJECTED')" not in text


def test_a_path_in_a_stored_turn_copies_no_file_of_the_user(tmp_path: Path, sales: Path) -> None:
    stored = replace(turn(code="print(1)"), files={"a.csv": str(sales), "b.csv": "9" * 5000})
    export(Turns([stored], lambda _: Inputs({}, {})), tmp_path / "x.py")
    assert "'a.csv' was given, and is not there any more" in (tmp_path / "x.py").read_text()
    assert not (tmp_path / "a.csv").exists()
