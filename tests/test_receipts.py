"""A receipt holds what an answer was computed from, and anybody can compute it again."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from code_chains import InputError, SandboxExecutor, create_code_chain
from code_chains.apps.terminal.cli import cli
from code_chains.chains.ranks import UNCHECKED
from code_chains.executors import Limits
from code_chains.receipts import (
    GivenFile,
    Receipt,
    StatedValue,
    create_receipt,
    read_receipt,
    run_again,
    save_receipt,
)
from code_chains.receipts.receipt import sha256_of
from code_chains.testing import ScriptedModel, asks_for_code

SALES = b"region,amount\nnorth,100\nsouth,250.5\n"
CODE = "import pandas as pd\nd = pd.read_csv('sales.csv')\nprint('Total:', d.amount.sum() * factor)"

SAME = "same: The program shows the same again; the answer's words are claims."


def ask(sandbox: SandboxExecutor, code: str, state: dict[str, Any]) -> dict[str, Any]:
    def reply(messages: Any) -> str:
        return f"```python\n{code}\n```" if asks_for_code(messages) else "The total is 701.0."

    with create_code_chain(ScriptedModel(reply), executor=sandbox) as chain:
        return dict(chain.invoke({"query": "What is the total, doubled?", **state}))


@pytest.fixture(scope="module")
def receipt(module_sandbox: SandboxExecutor) -> Receipt:
    result = ask(module_sandbox, CODE, {"files": {"sales.csv": SALES}, "variables": {"factor": 2}})
    return read_receipt(json.dumps(result["receipt"]))


@pytest.fixture(scope="module")
def module_sandbox() -> Any:
    with SandboxExecutor() as executor:
        yield executor


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    path.write_bytes(SALES)
    return path


def test_it_binds_the_numbers_of_the_answer_to_output_and_program(receipt: Receipt) -> None:
    assert [(value.text, value.output_line) for value in receipt.values] == [("701.0", 1)]
    assert receipt.lines == (3,)
    assert receipt.verdict["status"] == "unverified"
    assert receipt.isolation is not None
    assert receipt.versions["pandas"] == pd.__version__
    assert receipt.files["sales.csv"].bytes == len(SALES)
    assert b"250.5" not in receipt.to_json().encode()


def test_its_program_is_run_again_without_a_model(
    receipt: Receipt, module_sandbox: SandboxExecutor, sales: Path
) -> None:
    assert run_again(receipt, module_sandbox, files={"sales.csv": sales}).status == "same"


def test_a_file_that_is_missing_or_another_one_is_named(
    receipt: Receipt, module_sandbox: SandboxExecutor, sales: Path
) -> None:
    missing = run_again(receipt, module_sandbox)
    assert (missing.status, missing.reason) == ("unknown", "These files are missing: sales.csv.")
    sales.write_bytes(SALES + b"east,1\n")
    changed = run_again(receipt, module_sandbox, files={"sales.csv": sales})
    assert (changed.status, "another content" in changed.reason) == ("unknown", True)


def test_another_output_is_different_and_shown(
    receipt: Receipt, module_sandbox: SandboxExecutor, sales: Path
) -> None:
    other = replace(receipt, program=CODE.replace("sum", "max"))
    comparison = run_again(other, module_sandbox, files={"sales.csv": sales})
    assert (comparison.status, "501.0" in comparison.reason) == ("different", True)


def test_a_program_that_ends_otherwise_is_different(module_sandbox: SandboxExecutor) -> None:
    receipt = read_receipt(ask(module_sandbox, "print(5)", {})["receipt"])
    fails = run_again(replace(receipt, program="print(5)\n1 / 0"), module_sandbox)
    works = run_again(replace(receipt, failure="NameError: x"), module_sandbox)
    assert [each.status for each in (fails, works)] == ["different", "different"]
    assert ("ZeroDivisionError" in fails.reason, "NameError" in works.reason) == (True, True)


def test_what_shows_nothing_cannot_be_compared(module_sandbox: SandboxExecutor) -> None:
    result = ask(module_sandbox, "def double(x):\n    return 2 * x", {})
    assert run_again(result["receipt"], module_sandbox).status == "unknown"


def test_chance_is_named_as_the_reason(module_sandbox: SandboxExecutor) -> None:
    result = ask(module_sandbox, "import random\nprint(random.random())", {})
    comparison = run_again(read_receipt(json.dumps(result["receipt"])), module_sandbox)
    assert "depends on time or chance" in comparison.reason


@pytest.mark.parametrize(
    "value",
    [
        date(2026, 1, 31),
        {1, 2},
        (1, "a"),
        Decimal("0.10"),
        {3: b"x"},
        pd.DataFrame({"x": [1, 2], "day": pd.to_datetime(["2026-01-31", "2026-02-01"])}),
        np.array([1.5, 2.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_variables_of_types_that_json_lacks_are_given_again(
    module_sandbox: SandboxExecutor, value: Any
) -> None:
    result = ask(module_sandbox, "print(type(t), t)", {"variables": {"t": value}})
    kept = json.loads(json.dumps(result["receipt"]))
    assert (list(kept["packed_variables"]), kept["other_variables"]) == (["t"], {})
    assert run_again(kept, module_sandbox).status == "same"


def test_variables_that_are_too_large_are_in_it_by_their_checksum(module_sandbox: SandboxExecutor) -> None:
    result = ask(module_sandbox, "print(len(t))", {"variables": {"t": pd.DataFrame({"x": range(20_000)})}})
    receipt = read_receipt(result["receipt"])
    assert (list(receipt.other_variables), receipt.packed_variables) == (["t"], {})
    comparison = run_again(receipt, module_sandbox)
    assert (comparison.status, "too large" in comparison.reason) == ("unknown", True)


def test_a_variable_that_somebody_wrote_into_a_receipt_is_checked(
    receipt: Receipt, module_sandbox: SandboxExecutor, sales: Path
) -> None:
    forged = replace(receipt, packed_variables={"factor": '{"builtins.range": [0, 1000000000000, 1, 1]}'})
    with pytest.raises(InputError, match="variable of the receipt cannot be read"):
        run_again(forged, module_sandbox, files=[sales])


def test_it_is_read_from_a_file_text_or_a_result(receipt: Receipt, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    save_receipt(receipt.to_dict(), path)
    assert read_receipt(path) == read_receipt(path.read_text()) == read_receipt(receipt.to_dict()) == receipt
    with pytest.raises(InputError, match=r"pathlib\.Path\(…\) for a file"):
        read_receipt(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        read_receipt(tmp_path / "other.json")


def test_files_are_given_again_in_every_form_of_a_question(
    receipt: Receipt, module_sandbox: SandboxExecutor, sales: Path
) -> None:
    with sales.open("rb") as opened:
        for files in ({"sales.csv": SALES}, {"sales.csv": opened}, [opened], [sales]):
            assert run_again(receipt.to_dict(), module_sandbox, files=files).status == "same"
    with pytest.raises(InputError, match="given as text"):
        run_again(receipt, module_sandbox, files={"sales.csv": str(sales)})


def test_a_turn_of_a_conversation_says_that_it_is_one(module_sandbox: SandboxExecutor) -> None:
    def reply(messages: Any) -> str:
        if not asks_for_code(messages):
            return "It is 701."
        return (
            "```python\n"
            + ("print(x * 2)" if "Again" in str(messages[-1].content) else "x = 350.5\nprint(x)")
            + "\n```"
        )

    with create_code_chain(ScriptedModel(reply), executor=module_sandbox) as chain:
        results = [
            chain.invoke({"query": query, "session_id": "a"})
            for query in ("What is 350.5?", "Again, twice 350.5?")
        ]
    first, second = (read_receipt(json.dumps(result["receipt"])) for result in results)
    assert run_again(first, module_sandbox).status == "same"
    comparison = run_again(second, module_sandbox)
    assert (comparison.status, "after others that set x." in comparison.reason) == ("unknown", True)


@pytest.mark.parametrize(
    ("before", "code"),
    [
        ("x = 1", "x = x + 1\nprint(x)"),
        ("open('kept.txt', 'w').write('7')", "print(open('kept.txt').read())"),
    ],
    ids=["a name that it sets again", "a file"],
)
def test_a_turn_that_needs_an_earlier_one_is_not_said_to_be_different(
    before: str, code: str, module_sandbox: SandboxExecutor
) -> None:
    programs = iter([before + "\nprint(0)", code])
    model = ScriptedModel(lambda messages: f"```python\n{next(programs)}\n```")
    with create_code_chain(model, executor=module_sandbox, interpret=False) as chain:
        for query in ("Begin with 0.", "Go on."):
            result = chain.invoke({"query": query, "session_id": "a"})
    assert run_again(result["receipt"], module_sandbox).status == "unknown"


def test_a_turn_that_stands_alone_may_be_different(module_sandbox: SandboxExecutor) -> None:
    result = {"code": "print(6 * 7)", "execution": module_sandbox.run("print(43)"), "verdict": UNCHECKED}
    receipt = create_receipt({"query": "6 * 7?", "session": object()}, result)
    assert run_again(receipt, module_sandbox).status == "different"


def test_a_receipt_without_a_question_names_its_missing_files(
    module_sandbox: SandboxExecutor, sales: Path
) -> None:
    result = {"code": CODE, "execution": module_sandbox.run("print(1)"), "verdict": UNCHECKED}
    receipt = create_receipt({"query": "", "files": {"sales.csv": sales}}, result)
    assert "missing: sales.csv" in run_again(receipt, module_sandbox).reason


def test_a_turn_reads_a_file_of_an_earlier_one(module_sandbox: SandboxExecutor, sales: Path) -> None:
    code = "import pandas as pd\nprint(pd.read_csv('sales.csv').amount.sum())"
    with create_code_chain(
        ScriptedModel(lambda messages: f"```python\n{code}\n```"), executor=module_sandbox, interpret=False
    ) as chain:
        chain.invoke({"query": "What is the total?", "session_id": "a", "files": [sales]})
        result = chain.invoke({"query": "And the total?", "session_id": "a"})
    assert run_again(result["receipt"], module_sandbox, files=[sales]).status == "same"


def test_a_program_that_calls_a_tool_cannot_be_run_again(module_sandbox: SandboxExecutor) -> None:
    def fare(city: str) -> float:
        """Return the fare of a taxi in a city."""
        return 3.5

    model = ScriptedModel(lambda messages: "```python\nprint(fare('Lima'))\n```")
    with create_code_chain(model, executor=module_sandbox, interpret=False, tools=[fare]) as chain:
        result = chain.invoke({"query": "What is the fare in Lima?"})
    comparison = run_again(result["receipt"], module_sandbox)
    assert (comparison.status, "'fare'" in comparison.reason) == ("unknown", True)


def test_data_of_the_question_needs_no_file(module_sandbox: SandboxExecutor) -> None:
    code = "import pandas as pd\nprint(pd.read_csv('pasted.csv')['amount'].sum())"
    query = "What is the total amount?\n\nregion,amount\nnorth,10\nsouth,32\neast,1\n"
    result = ask(module_sandbox, code, {"query": query})
    assert result["receipt"]["files"].keys() == {"pasted.csv"}
    assert run_again(result["receipt"], module_sandbox).status == "same"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "The total is 9."}, "changed after it was written"),
        ({"format": "code-chains receipt 7"}, "receipt 7"),
        ({"files": 3}, "no receipt"),
    ],
)
def test_a_receipt_that_was_changed_or_is_of_another_version_is_refused(
    receipt: Receipt, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_receipt(json.dumps({**receipt.to_dict(), **change}))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "<html>"])
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no receipt") as caught:
        read_receipt(text)
    assert len(str(caught.value)) < 200


def test_the_command_line_says_same_or_different(receipt: Receipt, sales: Path) -> None:
    path = sales.parent / "receipt.json"
    path.write_text(receipt.to_json())
    result = CliRunner().invoke(cli, ["verify", str(path)])
    assert (result.exit_code, result.output.splitlines()[-1]) == (
        0,
        SAME,
    )
    sales.unlink()
    result = CliRunner().invoke(cli, ["verify", str(path)])
    assert (result.exit_code, "missing: sales.csv" in result.output) == (1, True)


def test_an_answer_of_a_results_file_is_named_by_its_id(receipt: Receipt, sales: Path) -> None:
    path = sales.parent / "results.jsonl"
    lines = ["{}", "{damaged", json.dumps({"id": "7", "computed": {"receipt": receipt.to_dict()}})]
    path.write_text("\n".join(lines))
    told = CliRunner().invoke(cli, ["verify", str(path), "--id", "7"])
    assert (told.exit_code, told.output.splitlines()[-1]) == (
        0,
        SAME,
    )
    told = CliRunner().invoke(cli, ["verify", str(path), "--id", "8"])
    assert (told.exit_code, "no answer with the id '8'" in told.output) == (2, True)
    told = CliRunner().invoke(cli, ["verify", str(path)])
    assert (told.exit_code, "Pass --id with one of these: 7" in told.output) == (2, True)


def signed(receipt: Receipt, **changes: Any) -> str:
    """Return the JSON of a receipt that somebody else wrote."""
    fields = {key: getattr(replace(receipt, **changes), key) for key in receipt.to_dict()}
    return Receipt(**{**fields, "sha256": Receipt(**fields).checksum()}).to_json()


@pytest.mark.parametrize("changes", [{"verdict": {}}, {"limits": {"memory": 1e999, "seconds": 1e999}}])
def test_a_receipt_of_others_is_read_without_a_traceback(
    changes: dict[str, Any], receipt: Receipt, sales: Path
) -> None:
    path = sales.parent / "receipt.json"
    path.write_text(signed(receipt, **changes).replace("Infinity", "1e999"))
    told = CliRunner().invoke(cli, ["verify", str(path)])
    assert told.exception is None or isinstance(told.exception, SystemExit), told.exception


def test_files_of_the_same_name_are_told_apart_by_their_folders(
    module_sandbox: SandboxExecutor, tmp_path: Path
) -> None:
    files = {}
    for name in ("a/x.csv", "b/x.csv"):
        files[name] = tmp_path / "data" / name
        files[name].parent.mkdir(parents=True)
        files[name].write_text(f"n\n{len(files)}\n")
    result = ask(module_sandbox, "print(open('a/x.csv').read(), open('b/x.csv').read())", {"files": files})
    (tmp_path / "r.json").write_text(json.dumps(result["receipt"]))
    given = [part for path in reversed(files.values()) for part in ("--file", str(path))]
    told = CliRunner().invoke(cli, ["verify", str(tmp_path / "r.json"), *given])
    assert told.exit_code == 0, told.output


def test_a_receipt_names_no_file_outside_its_folder(receipt: Receipt, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("x")
    folder = tmp_path / "inner"
    folder.mkdir()
    files = {"../secret.txt": receipt.files["sales.csv"]}
    fields = {key: getattr(replace(receipt, files=files), key) for key in receipt.to_dict()}
    outside = Receipt(**{**fields, "sha256": Receipt(**fields).checksum()})
    (folder / "receipt.json").write_text(outside.to_json())
    result = CliRunner().invoke(cli, ["verify", str(folder / "receipt.json")])
    assert "These files are missing: ../secret.txt." in result.output


def test_without_a_phrased_answer_the_values_are_those_of_the_output(sandbox: SandboxExecutor) -> None:
    execution = sandbox.run("print(6 * 7)")
    from code_chains.state import Verdict

    outcome = {"code": "print(6 * 7)", "execution": execution, "verdict": Verdict("unverified", "none", "")}
    assert [value.text for value in create_receipt({"query": "?"}, outcome).values] == ["42"]


@pytest.mark.parametrize(
    "code",
    [
        "import random, pathlib\npathlib.Path('out.csv').write_text(str(random.random()))\nprint('Saved')",
        "import matplotlib.pyplot as plt\nimport numpy as np\nplt.plot(np.random.rand(9))\nplt.show()\nprint('Drawn')",
    ],
    ids=["file", "figure"],
)
def test_files_and_figures_that_a_program_makes_are_compared(
    module_sandbox: SandboxExecutor, code: str
) -> None:
    comparison = run_again(ask(module_sandbox, code, {})["receipt"], module_sandbox)
    assert (comparison.status, "another content" in comparison.reason) == ("different", True)
    assert "time or chance" in comparison.reason


def test_a_figure_that_is_made_again_is_the_same(module_sandbox: SandboxExecutor) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.savefig('a.png')\nprint('Drawn')"
    assert run_again(ask(module_sandbox, code, {})["receipt"], module_sandbox).status == "same"


@pytest.mark.parametrize(
    "value", [[1.0, float("nan"), 2.0], {"x": float("inf")}, np.array([float("nan"), 1.0])]
)
def test_infinity_and_what_is_no_number_are_given_again(module_sandbox: SandboxExecutor, value: Any) -> None:
    receipt = ask(module_sandbox, "print(x)", {"variables": {"x": value}})["receipt"]
    assert run_again(json.loads(json.dumps(receipt)), module_sandbox).status == "same"


def test_what_is_shown_as_the_output_is_that_of_the_run(module_sandbox: SandboxExecutor) -> None:
    receipt = read_receipt(ask(module_sandbox, "print(sum(range(1, 6)))", {})["receipt"])
    edited = replace(receipt, output="16", values=())
    forged = replace(edited, sha256=edited.checksum())
    assert run_again(read_receipt(forged.to_dict()), module_sandbox).status == "different"


def test_a_receipt_without_a_program_proves_nothing(module_sandbox: SandboxExecutor) -> None:
    receipt = read_receipt(ask(module_sandbox, "print(1)", {})["receipt"])
    comparison = run_again(replace(receipt, program=" "), module_sandbox)
    assert (comparison.status, "no program" in comparison.reason) == ("unknown", True)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_receipt_is_read_as_editors_and_shells_save_it(
    receipt: Receipt, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(receipt.to_dict()), encoding=encoding)
    assert read_receipt(path) == receipt


@pytest.mark.parametrize(
    "content", [b"\xff\x00\x01", b"null", b"5", b"[1]", '{"question": "\xe4"}'.encode("latin-1")]
)
def test_what_is_no_receipt_is_told_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    done = CliRunner().invoke(cli, ["verify", str(path)])
    assert (done.exit_code != 0, len(done.output.strip().splitlines())) == (True, 1)


def test_the_limits_that_a_program_had_and_files_in_folders_are_used_again(tmp_path: Path) -> None:
    with SandboxExecutor(limits=Limits(memory="1G")) as executor:
        code = "data = bytes(700 << 20)\nprint(open('data/sales.csv').read())"
        result = ask(executor, code, {"files": {"data/sales.csv": SALES}})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sales.csv").write_bytes(SALES)
    save_receipt(result["receipt"], tmp_path / "r.json")
    done = CliRunner().invoke(cli, ["verify", str(tmp_path / "r.json")])
    assert done.output.splitlines()[-1] == SAME
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    given = ["--file", str(tmp_path / "elsewhere" / "sales.csv")]
    assert CliRunner().invoke(cli, ["verify", str(tmp_path / "r.json"), *given]).exit_code == 0


# -- receipts that somebody else wrote ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest(module_sandbox: SandboxExecutor) -> Receipt:
    """The receipt of `print(42)`, with an answer that says so."""
    receipt = read_receipt(ask(module_sandbox, "print(42)", {})["receipt"])
    return replace(receipt, question="What is 6 times 7?", answer="6 times 7 is 42.", values=())


OPPOSITES = [
    ("legal", "No: it is illegal."),
    ("safe", "It is unsafe."),
    ("True", "It is untrue."),
    ("no", "Yes, as is well known."),
    ("15", "15k"),
    ("15", "999EUR, of 15 rows"),
    ("15", "⑨⑨⑨, from 15 rows"),
    ("15", "²³⁴, from 15 rows"),
    ("15", "九百, from 15 rows"),
    ("15", "The total is 999,999 euros.\n\n(As 15 auditors confirm.)"),
]
"""Outputs, and answers that have their characters and say something else."""


@pytest.mark.parametrize(
    "changes",
    [
        {"answer": "The total is 999,999 EUR."},
        {"answer": "The total is 999,999 EUR.", "values": (StatedValue("999,999", 1),)},
        {"answer": "The total is 42 million."},
        {"answer": "The total is forty-two thousand."},
        {"answer": "42, or rather 999,999"},
        {"answer": "42 " * 11_000 + "999,999"},
        {"answer": "Forty-three."},
        {"answer": "6."},
        {"answer": "It is true."},
        {"answer": "42.", "values": (StatedValue("42", 7),)},
        {"answer": "The total is 43.\n\n(Program output: 43)"},
        {"answer": "The total is ４３."},
        {"output": "43", "answer": "43."},
        {"program": "print(43)"},
        {"artifacts": {"a.csv": ""}},
        {"failure": "It failed."},
        {
            "program": "print(True)",
            "output": "True",
            "output_sha256": sha256_of("True"),
            "answer": "No, it is false.",
        },
        {"program": "print('yes')", "output": "yes", "output_sha256": sha256_of("yes"), "answer": "No."},
        *(
            {
                "program": f"print({shown!r})",
                "output": shown,
                "output_sha256": sha256_of(shown),
                "answer": answer,
            }
            for shown, answer in OPPOSITES
        ),
        {"program": "print('42\\nsame: The program shows the same again.')"},
        {"program": "raise ValueError('x\\nsame: The program shows the same again.')"},
        {"program": "print('x' * 49 + 'same: The program shows the same again.' * 9)"},
    ],
    ids=range(21 + len(OPPOSITES)),
)
def test_a_forged_receipt_is_never_the_same(honest: Receipt, tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "r.json").write_text(signed(honest, **changes))
    told = CliRunner().invoke(cli, ["verify", str(tmp_path / "r.json")])
    lines = told.output.splitlines()
    assert (told.exit_code, lines[-1].startswith(("different: ", "unknown: "))) == (1, True), told.output
    assert not any(line.startswith("same") for line in lines)


LINES = "\nsame: The program shows the same again.\r\x0b\x85\u2028same: x"
FOREIGN = (
    f"\x1b[2J\x1b[H\x1b]0;x\x07\u202e\ud800{LINES}" + " " * 72 + "same: The program shows the same again."
)


@pytest.mark.parametrize(
    "field", ["question", "answer", "failure", "program", "notes", "stdin", "language", "output"]
)
@pytest.mark.parametrize("columns", ["20", "80"])
def test_nothing_of_a_receipt_looks_like_a_line_of_ours(
    honest: Receipt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = FOREIGN.replace("\ud800", "")
    changes: dict[str, Any] = {field: (text,) if field == "notes" else text}
    forged = replace(honest, verdict={"status": text, "reason": text}, versions={text: text}, **changes)
    (tmp_path / "r.json").write_text(
        signed(forged, files={f"{text}.csv": GivenFile("0", 1)} if field == "stdin" else {})
    )
    told = CliRunner().invoke(cli, ["verify", str(tmp_path / "r.json")])
    *lines, last = told.output.splitlines()
    assert last == SAME or (told.exit_code and not last.startswith("same"))
    titles = ("  | ", "Compared:", "Claimed by the receipt, ", "Why:")
    assert all(line.startswith(titles) and len(line) <= max(int(columns), 33) for line in lines), lines
    assert not set("\x1b\x07\u202e\x85\u2028\r") & set(told.output)


def test_what_was_compared_is_listed_and_a_verdict_is_claimed(honest: Receipt, tmp_path: Path) -> None:
    forged = signed(
        honest, verdict={"status": "verified", "reason": "Approved by the auditor.", "by": "tests"}
    )
    (tmp_path / "r.json").write_text(forged)
    told = CliRunner().invoke(cli, ["verify", str(tmp_path / "r.json")])
    assert told.output.splitlines() == [
        "Compared:",
        "  | the output",
        "  | of the answer's numbers, in the output: 42 (line 1)",
        "  | of the answer's numbers, only in the question or counted: 6, 7",
        "Claimed by the receipt, question:",
        "  | What is 6 times 7?",
        "Claimed by the receipt, answer:",
        "  | 6 times 7 is 42.",
        "Claimed by the receipt, verdict:",
        "  | verified: Approved by the auditor.",
        SAME,
    ]


@pytest.mark.parametrize(
    "content",
    [
        "[" * 10**6,
        '{"a":' * 10**5,
        "\0" * 1000,
        '{"format": "x\\u001b[2J"}',
        '{"question": 5}',
        '{"files": {"a": 5}}',
        '{"question": "a", "question": "b"}',
        '{"limits": {"seconds": NaN}}',
        "9" * 5000,
    ],
    ids=range(9),
)
def test_a_broken_receipt_is_told_in_one_short_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "r.json").write_text(content)
    told = CliRunner().invoke(cli, ["verify", str(tmp_path / "r.json")])
    assert told.exit_code == 2
    assert (len(told.output.splitlines()), len(told.output) < 500, "\x1b" in told.output) == (1, True, False)


def test_a_field_of_a_receipt_has_its_type(honest: Receipt) -> None:
    for key in Receipt.__dataclass_fields__:
        values: tuple[Any, ...] = (None, 5, "x", [5], {"a": 5}, [[]], {"a": []})
        for value in values:
            with suppress(InputError):
                read_receipt({**honest.to_dict(), key: value})


@pytest.mark.parametrize("kind", ["link", "sub/secret", "fifo", "/etc/passwd", "proc"])
def test_a_file_beside_a_receipt_is_a_regular_one_in_its_folder(
    honest: Receipt, tmp_path: Path, kind: str
) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (folder / "link").symlink_to(outside / "secret")
    (folder / "sub").symlink_to(outside)
    (folder / "proc").symlink_to("/proc/self/environ")
    os.mkfifo(folder / "fifo")
    (folder / "r.json").write_text(signed(honest, files={kind: GivenFile("0" * 64, 1)}))
    told = CliRunner().invoke(cli, ["verify", str(folder / "r.json")])
    assert f"These files are missing: {kind}." in told.output


def test_a_receipt_is_a_regular_file_within_a_limit(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(900 << 20)
    os.mkfifo(tmp_path / "fifo")
    for name in ("sparse", "fifo"):
        with pytest.raises(InputError, match="cannot be read"):
            read_receipt(tmp_path / name)
        assert CliRunner().invoke(cli, ["verify", str(tmp_path / name)]).exit_code == 2


@pytest.mark.parametrize("quote", ["5000000 euros", "51999", "5\n5000000"])
def test_a_quotation_that_only_begins_as_the_output_is_none(sandbox: SandboxExecutor, quote: str) -> None:
    honest = read_receipt(ask(sandbox, "print(5)", {})["receipt"])
    forged = signed(honest, answer=f"It is 5000000, not 5.\n\n(Program output: {quote})", values=())
    assert run_again(read_receipt(forged), sandbox).status == "unknown"


def test_words_with_figures_are_looked_up_in_time_that_is_linear(sandbox: SandboxExecutor) -> None:
    honest = read_receipt(ask(sandbox, "print(5)", {})["receipt"])
    forged = signed(honest, answer="5 " + "1k " * 6_000, question="a " * 1_000_000, values=())
    assert run_again(read_receipt(forged), sandbox).status == "unknown"
