"""Parts of the page that need no browser: uploads, tables, messages for visitors, files of conversations."""

from __future__ import annotations

import gc
import os
import time
import weakref
from pathlib import Path

import pytest

from code_chains.apps.page import history as history_module
from code_chains.apps.page.entries import ChatEntry, EntryOutcome
from code_chains.apps.page.failures import report_error
from code_chains.apps.page.guard import secret_path
from code_chains.apps.page.history import ConversationHistory
from code_chains.apps.page.tables import for_spreadsheets, label_of
from code_chains.apps.page.uploads import Uploads
from code_chains.apps.run_view import file_notes
from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.factory import create_code_chain
from code_chains.errors import InputError, WeightsError
from code_chains.executors import SandboxExecutor
from code_chains.state import Artifact, DisplayData, Execution, Turn
from code_chains.testing import ScriptedModel


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> CodeChain:
    return create_code_chain(ScriptedModel(lambda messages: ""), executor=sandbox)


@pytest.mark.parametrize(
    ("rows", "label"), [(1000, "Download as CSV"), (1001, "Download the first 1,000 rows as CSV")]
)
def test_a_link_says_how_much_of_a_table_is_there(sandbox: SandboxExecutor, rows: int, label: str) -> None:
    done = sandbox.run(f"import pandas as pd\npd.DataFrame({{'n': range({rows})}})")
    [table] = [data.data for data in done.display_data if data.media_type == "text/csv"]
    assert label_of(table.encode()) == label
    assert len(for_spreadsheets(table.encode()).splitlines()) == 1001


def test_a_cell_of_any_length_is_downloaded() -> None:
    table = b'text,n\n"' + b"x" * 200_000 + b'",1\n'
    assert for_spreadsheets(table).decode("utf-8-sig") == table.decode().replace('"', "").replace(
        "\n", "\r\n"
    )


def test_a_version_that_a_running_question_uses_stays(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    uploads.add("a.csv", b"1")
    used = uploads.paths["a.csv"]
    uploads.add("a.csv", b"2", keeps_older=True)
    assert (used.read_bytes(), uploads.paths["a.csv"].read_bytes()) == (b"1", b"2")
    uploads.add("a.csv", b"3")
    assert (used.exists(), uploads.paths["a.csv"].read_bytes()) == (True, b"3")


def test_only_tables_of_what_a_program_displays_are_kept() -> None:
    displayed = (DisplayData("text/html", "<table>"), DisplayData("text/markdown", "x" * 1000))
    outcome = EntryOutcome()
    outcome.add({"execution": Execution("ok", display_data=displayed)})
    assert outcome.execution is not None
    assert outcome.execution.display_data == displayed[:1]


def test_notes_of_several_parts_of_a_result_are_all_shown() -> None:
    outcome = EntryOutcome()
    for notes in (["a.csv: 1 line left out"], ["It was not saved."], []):
        outcome.add({"notes": notes})
    assert file_notes(vars(outcome)) == ["Note: a.csv: 1 line left out", "Note: It was not saved."]


def test_nothing_holds_artifacts_that_were_dropped() -> None:
    entry, artifact = ChatEntry("?"), Artifact.of("a.bin", "application/octet-stream", b"1")
    known = weakref.ref(artifact)
    chunk = {"code": "1", "execution": Execution("ok", artifacts=(artifact,))}
    entry.handle_event({"event": "on_chain_stream", "parent_ids": [], "data": {"chunk": chunk}})
    del artifact, chunk
    assert known() is not None
    entry.outcome.drop_artifacts()
    gc.collect()
    assert known() is None


def test_only_the_owner_of_a_page_reads_why_there_is_no_answer() -> None:
    error = WeightsError("The model in /home/ann/x.gguf cannot be loaded.")
    assert "x.gguf" not in report_error(error)
    assert "x.gguf" in report_error(error, to_owner=True)


def test_visitors_learn_no_folders() -> None:
    error = InputError(
        "The file '/home/owner/files/page-abc/a b.csv' does not exist. Paths are relative to /srv."
    )
    assert report_error(error) == "The file 'a b.csv' does not exist."


def test_files_of_the_conversation_that_was_unused_for_longest_are_deleted_first(
    chain: CodeChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "MAX_STORED_BYTES", 25)
    history = ConversationHistory(chain, tmp_path)
    for number, name in enumerate(("used", "unused")):
        folder = history.folder(name)
        folder.mkdir()
        (folder / "a").write_bytes(bytes(10))
        os.utime(folder, (time.time() - 100 + number, time.time() - 100 + number))
    history.touch("used")
    assert history.make_space(10, [])
    assert [folder.name for folder in tmp_path.iterdir()] == ["used"]


@pytest.mark.parametrize("content", ["", "..", "x" * 200])
def test_a_secret_path_that_is_damaged_is_made_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "path").write_text(content)
    path = secret_path(tmp_path)
    assert (len(path) >= 20, secret_path(tmp_path)) == (True, path)


def test_paths_of_stored_turns_are_neither_given_nor_removed_outside_of_the_uploads(tmp_path: Path) -> None:
    victim, uploads = tmp_path / "victim", Uploads(tmp_path / "uploads")
    victim.mkdir()
    (victim / "x").write_text("secret")
    for path in (victim / "x", tmp_path / "uploads" / ".." / "victim" / "x", Path("/etc/passwd")):
        stored = Turn("0" * 20 + "-x", "?", files={"x": str(path)}, runs=1)
        uploads.restore([stored], keeps_files=True)
        uploads.take_back(stored)
        assert uploads.paths == {}
    uploads.pending["x"] = victim / "x"
    uploads.remove("x")
    assert (victim / "x").exists()
