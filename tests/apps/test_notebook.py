"""Notebook cells with questions, in a notebook that Jupyter's client runs, and in a shell."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient

from code_chains import CodeChain, Repair, SandboxExecutor, create_code_chain
from code_chains.receipts import read_receipt, run_again
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import HOSTILE, QUESTION, SUM_ANSWER, OpenAI

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('drawn', total)"
TABLE = "import pandas as pd\nprint('rows:')\npd.DataFrame({'<b>x</b>': [1, 2]})"
PROGRAMS = {
    "draw": PLOT,
    "table": TABLE,
    "write": "open('a b.txt', 'w').write('hi')\nprint('written')",
    "number": "6 * 7",
}
SETUP = f"""
from code_chains import create_code_chain
from code_chains.receipts import read_receipt, run_again
from code_chains.testing import ScriptedModel, asks_for_code

def script(messages):
    if not asks_for_code(messages):
        return "It is **well** <b>done</b>."
    programs = {PROGRAMS!r}
    question = messages[-1].text.rpartition("\\n\\n")[2]
    return next((program for word, program in programs.items() if word in question), "total = 42\\nprint(total)")

code_chain = create_code_chain(ScriptedModel(script))
"""


def outputs(notebook: Any, cell: int) -> list[dict[str, Any]]:
    return [output["data"] for output in notebook.cells[cell].outputs if "data" in output]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Any:
    sources = [
        SETUP,
        "%load_ext code_chains",
        "%%code_chain\nadd up",
        "%%code_chain --result result\ndraw it",
        "result['code']",
        "%%code_chain --into frame\na table",
        "type(frame).__name__, int(frame.sum().sum())",
        "%%code_chain --into number\na number",
        "number + 0.5",
        "%%code_chain\nwrite it",
        "%code_chain --help",
        "%code_chain -s asked what is it?",
        "%code_chain?",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, timeout=100, kernel_name="python3").execute(
        cwd=str(tmp_path_factory.mktemp("notebook"))
    )
    return notebook


@pytest.mark.kernel_sandbox
@pytest.mark.timeout(200)
def test_a_cell_shows_program_output_and_answer(notebook: Any) -> None:
    displayed = str(outputs(notebook, 2))
    assert all(part in displayed for part in ("```python\\ntotal = 42", "'42'", "It is **well**"))


@pytest.mark.kernel_sandbox
def test_the_next_cell_continues_with_the_state(notebook: Any) -> None:
    images = [data["image/png"] for data in outputs(notebook, 3) if "image/png" in data]
    assert base64.b64decode(images[0]).startswith(b"\x89PNG")
    assert "drawn 42" in str(outputs(notebook, 3))


@pytest.mark.kernel_sandbox
def test_an_answer_is_markdown_without_html_of_the_model(notebook: Any) -> None:
    (answer,) = [data for data in outputs(notebook, 2) if "well" in str(data)]
    assert answer["text/html"].startswith("<p>It is <strong>well</strong> &lt;b&gt;done&lt;/b&gt;.</p>\n")
    assert '<pre class="printed">42</pre>' in answer["text/html"]
    assert answer["text/plain"].startswith("It is **well** <b>done</b>.")


@pytest.mark.kernel_sandbox
def test_a_frame_is_a_table_in_a_frame_of_its_own(notebook: Any) -> None:
    (table,) = [data for data in outputs(notebook, 5) if "iframe" in str(data)]
    assert table["text/html"].startswith("<iframe sandbox title=")
    assert "&lt;td&gt;2&lt;/td&gt;" in table["text/html"]
    assert "rows:" in str(outputs(notebook, 5))


@pytest.mark.kernel_sandbox
def test_values_and_frames_become_variables(notebook: Any) -> None:
    assert outputs(notebook, 6)[0]["text/plain"] == "('DataFrame', 3)"
    assert outputs(notebook, 8)[0]["text/plain"] == "42.5"


@pytest.mark.host
@pytest.mark.kernel_sandbox
def test_files_are_saved_and_linked(notebook: Any) -> None:
    assert "answer-files/a-b.txt" in str(outputs(notebook, 9))


@pytest.mark.kernel_sandbox
def test_help_lists_the_options(notebook: Any) -> None:
    text = str(outputs(notebook, 10))
    assert all(
        option in text for option in ("Usage: %%code_chain", "--base-url", "--judge", "--budget", "--seconds")
    )


@pytest.mark.kernel_sandbox
def test_a_question_mark_at_the_end_of_a_line_asks_and_does_not_show_help(notebook: Any) -> None:
    assert "It is **well**" in str(outputs(notebook, 11))
    assert "Usage" not in str(notebook.cells[11].outputs)
    assert notebook.cells[12].outputs == []  # Help on the magic is shown beside the cells.


@pytest.mark.smoke
@pytest.mark.kernel_sandbox
def test_the_result_is_a_variable(notebook: Any) -> None:
    assert "plt.plot" in str(outputs(notebook, 4))


@pytest.fixture
def shell(sandbox: SandboxExecutor) -> Iterator[InteractiveShell]:
    def script(messages: list[Any]) -> str:
        program = "for i in range(100_000): print(i)" if "many" in str(messages[-1].text) else "print(n + 1)"
        return program if asks_for_code(messages) else "It is so."

    with create_code_chain(ScriptedModel(script), executor=sandbox) as chain:
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "code_chains")
        shell.user_ns |= {"code_chain": chain, "n": 41}
        yield shell
        InteractiveShell.clear_instance()


def chain_of(shell: InteractiveShell) -> CodeChain:
    chain = shell.user_ns["code_chain"]
    assert isinstance(chain, CodeChain)
    return chain


def test_selected_variables_are_passed_to_programs(shell: InteractiveShell) -> None:
    with capture_output() as captured:
        shell.run_cell_magic("code_chain", "-v n", "one more?")
    assert "42" in str([output.data for output in captured.outputs])


def test_a_row_that_is_left_out_is_named_below_the_answer(shell: InteractiveShell, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("r,n\nN,1\nTotal,1\n")
    with capture_output() as captured:
        shell.run_cell_magic("code_chain", f"-v n -f {tmp_path / 'a.csv'}", "one more?")
    assert "Note: a.csv: 1 line left out" in str([output.data for output in captured.outputs])


def test_a_line_magic_answers_too(shell: InteractiveShell) -> None:
    with capture_output():
        shell.run_line_magic("code_chain", "-v n -s ann one more?")
    assert [turn.query for turn in chain_of(shell).turns("ann")] == ["one more?"]


def test_a_question_is_taken_verbatim(shell: InteractiveShell) -> None:
    with capture_output():
        shell.run_line_magic("code_chain", "-v n -s 'ann b' What's 6 - 7?")
        shell.run_cell_magic("code_chain", "-v n -s 'ann b' In short:", "what's one more?")
    assert [turn.query for turn in chain_of(shell).turns("ann b")] == [
        "What's 6 - 7?",
        "In short:\nwhat's one more?",
    ]


def test_an_error_of_a_model_is_one_line(shell: InteractiveShell, sandbox: SandboxExecutor) -> None:
    def script(_: Any) -> str:
        raise RuntimeError("401 wrong key")

    shell.user_ns["code_chain"] = create_code_chain(ScriptedModel(script), executor=sandbox)
    with capture_output(), pytest.raises(UsageError, match="401 wrong key"):
        shell.run_line_magic("code_chain", "one more?")


def test_output_cannot_control_the_terminal_or_reveal_a_key(
    shell: InteractiveShell, sandbox: SandboxExecutor
) -> None:
    def script(messages: list[Any]) -> str:
        return f"print({HOSTILE!r})  # {HOSTILE}" if asks_for_code(messages) else HOSTILE

    def refuse(_: Any) -> str:
        raise RuntimeError(HOSTILE)

    shell.user_ns["code_chain"] = create_code_chain(ScriptedModel(script), executor=sandbox)
    with capture_output() as captured:
        shell.run_line_magic("code_chain", "one more?")
    displayed = "".join(str(text) for output in captured.outputs for text in output.data.values())
    shell.user_ns["code_chain"] = create_code_chain(ScriptedModel(refuse), executor=sandbox)
    with capture_output(), pytest.raises(UsageError) as failed:
        shell.run_line_magic("code_chain", "one more?")
    control_characters = re.compile("[\x1b\x07\x9b\u202e]")
    assert (
        "owned" in displayed,
        control_characters.search(displayed),
        control_characters.search(str(failed.value)),
    ) == (True, None, None)
    assert "1234567890abcdef" not in str(failed.value)


def test_a_new_conversation_can_be_started(shell: InteractiveShell) -> None:
    with capture_output():
        shell.run_line_magic("code_chain", "-v n -s ann one more?")
        shell.run_line_magic("code_chain", "--new -s ann")
    assert chain_of(shell).turns("ann") == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--wrong", "--wrong"),
        ("-v missing x", "missing"),
        ("-f nowhere.csv x", "nowhere.csv"),
        ("-f setup.cfg -f ./setup.cfg y", "same name"),
        ("--into 'a b' y", "cannot be called"),
        ("--base-url http://127.0.0.1:9/v1 y", "--model"),
        ("--budget apples=3 y", "apples"),
        ("", "empty"),
    ],
)
def test_a_usage_error_is_one_line(shell: InteractiveShell, line: str, message: str) -> None:
    with capture_output(), pytest.raises(UsageError, match=message):
        shell.run_line_magic("code_chain", line)


def test_an_interrupted_program_leaves_the_conversation_unchanged(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chain = chain_of(shell)

    def interrupted(*_: Any, **__: Any) -> Iterator[Any]:
        yield {"query": "x"}
        raise KeyboardInterrupt

    monkeypatch.setattr(CodeChain, "stream", interrupted)
    with capture_output(), pytest.raises(KeyboardInterrupt):
        shell.run_line_magic("code_chain", "-s ann x")
    assert chain.turns("ann") == []


def test_a_value_of_another_type_is_not_assigned(shell: InteractiveShell, sandbox: SandboxExecutor) -> None:
    script = ScriptedModel(lambda messages: "object()" if asks_for_code(messages) else "It is so.")
    shell.user_ns |= {"code_chain": create_code_chain(script, executor=sandbox), "kept": 1}
    with capture_output(), pytest.raises(UsageError, match="kept was not assigned"):
        shell.run_line_magic("code_chain", "--into kept one?")
    assert shell.user_ns["kept"] == 1


def test_a_typed_value_is_assigned_as_its_type(shell: InteractiveShell, sandbox: SandboxExecutor) -> None:
    script = ScriptedModel(lambda messages: "(1, 2)[:] + ()" if asks_for_code(messages) else "1 and 2.")
    with create_code_chain(script, executor=sandbox, answer_type=set[float]) as chain, capture_output():
        shell.user_ns["code_chain"] = chain
        shell.run_line_magic("code_chain", "--into numbers which?")
    assert shell.user_ns["numbers"] == {1.0, 2.0}


def test_options_of_the_chain_make_another_one(shell: InteractiveShell, openai_server: OpenAI) -> None:
    options = f"-m test --base-url {openai_server.base_url} --judge --seconds 7 --memory 256M --budget model_calls=9"
    with capture_output() as captured:
        shell.run_line_magic("code_chain", f"{options} {QUESTION}")
    assert SUM_ANSWER in str([output.data for output in captured.outputs])
    assert len(openai_server.requests) == 3


def test_a_failure_tells_the_line_and_what_exists(shell: InteractiveShell, sandbox: SandboxExecutor) -> None:
    script = ScriptedModel(lambda messages: "d = {'there': 1}\nd['missing']")
    shell.user_ns["code_chain"] = create_code_chain(script, executor=sandbox, solve=Repair(1))
    with capture_output() as captured:
        shell.run_line_magic("code_chain", "one?")
    displayed = str([output.data for output in captured.outputs])
    assert (">   2 |" in displayed, "The keys are" in displayed) == (True, True)


def test_between_two_attempts_it_says_why(shell: InteractiveShell, sandbox: SandboxExecutor) -> None:
    programs = iter(["print(1 / 0)", "print(3 * 5)"])
    model = ScriptedModel(
        lambda messages: f"```python\n{next(programs)}\n```" if asks_for_code(messages) else "It is 15."
    )
    shell.user_ns["code_chain"] = create_code_chain(model, executor=sandbox)
    with capture_output() as captured:
        shell.run_line_magic("code_chain", "3 * 5?")
    shown = [str(output.data) for output in captured.outputs]
    (position,) = [index for index, text in enumerate(shown) if "Attempt 1 failed: ZeroDivisionError" in text]
    assert "print(3 * 5)" in shown[position + 1]


@pytest.mark.slow
def test_a_figure_that_a_program_saves_is_a_file(
    shell: InteractiveShell, sandbox: SandboxExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('chart.png')"
    script = ScriptedModel(lambda messages: drawn if asks_for_code(messages) else "Drawn.")
    shell.user_ns["code_chain"] = create_code_chain(script, executor=sandbox)
    with capture_output():
        shell.run_line_magic("code_chain", "draw")
    assert (tmp_path / "answer-files" / "chart.png").is_file()


def test_an_error_of_the_server_names_it(shell: InteractiveShell) -> None:
    with capture_output(), pytest.raises(UsageError, match=r"127\.0\.0\.1:9/v1 cannot be reached"):
        shell.run_line_magic("code_chain", f"-m test --base-url http://127.0.0.1:9/v1 {QUESTION}")


# -- interrupted, begun again, and long --------------------------------------------------------------------------------


def test_an_interrupted_cell_says_so_in_one_line(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CodeChain, "stream", interrupt)
    result = shell.run_cell("%%code_chain\nadd up")
    printed = capsys.readouterr()
    assert not result.success
    assert "Stopped. The conversation is unchanged." in printed.out + printed.err
    assert "Traceback" not in printed.out + printed.err


@pytest.mark.kernel_sandbox
def test_a_named_conversation_that_is_empty_says_so(shell: InteractiveShell) -> None:
    notes = []
    for _ in range(2):
        with capture_output() as captured:
            shell.run_cell("%%code_chain -s cls -v n\nadd up")
        notes.append("'cls' begins here" in str([output.data for output in captured.outputs]))
    assert notes == [True, False]


@pytest.mark.kernel_sandbox
def test_of_a_long_output_the_notebook_stores_the_beginning_and_the_end(shell: InteractiveShell) -> None:
    with capture_output() as captured:
        shell.run_cell("%%code_chain\nmany")
    stored = str([output.data for output in captured.outputs])
    assert "shortened" in stored
    assert "99999" in stored
    assert len(stored) < 200_000


def test_a_receipt_is_written_for_verify_and_replaces_no_file(
    shell: InteractiveShell, sandbox: SandboxExecutor, tmp_path: Path
) -> None:
    path = tmp_path / "receipt.json"
    with create_code_chain(
        ScriptedModel(lambda messages: "6 * 7"), executor=sandbox, interpret=False
    ) as chain:
        shell.user_ns["code_chain"] = chain
        with capture_output():
            shell.run_line_magic("code_chain", f"--receipt '{path}' What is 6 times 7?")
        assert run_again(read_receipt(path.read_text()), sandbox).status == "same"
        with capture_output(), pytest.raises(UsageError, match="no file is ever replaced"):
            shell.run_line_magic("code_chain", f"--receipt '{path}' What is 6 times 7?")
        with capture_output(), pytest.raises(UsageError, match="cannot be saved"):
            shell.run_line_magic("code_chain", f"--receipt '{tmp_path}/missing/r.json' What is 6 times 7?")
