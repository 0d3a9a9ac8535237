"""A results file contains complete lines, exactly once each, even if its writer crashes."""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from code_chains import create_code_chain
from code_chains.batch.export import export_table
from code_chains.batch.questions import Question
from code_chains.batch.results_file import ResultsFile
from code_chains.batch.runner import map_questions
from code_chains.batch.stored_artifacts import with_artifacts
from code_chains.errors import StoreError
from code_chains.testing import ScriptedExecutor, ScriptedModel
from tests.conftest import room


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


def line(question_id: str, **computed: Any) -> dict[str, Any]:
    """Return the record of an answer."""
    return {"id": question_id, "given": {"query": "?", "own": {}, "digest": "d"}, "computed": computed}


def ids(path: Path) -> list[str]:
    return [json.loads(text)["id"] for text in path.read_text().splitlines()[1:]]


HEAD = json.dumps({"code_chains_results": 1, "run": {}})


def test_a_resumed_file_knows_the_answered_questions(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.add(line("a"))
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done == {"a"}
        results_file.add(line("b"))
    assert ids(path) == ["a", "b"]


def test_nothing_is_written_twice(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.add(line("a", n=1))
        results_file.add(line("a", n=2))
    assert ids(path) == ["a"]


@pytest.mark.parametrize("torn", ['{"id": "b"', '{"id": "b"}', "\0\0"])
def test_an_incomplete_last_line_is_removed(path: Path, torn: str) -> None:
    path.write_text(f"{HEAD}\n{json.dumps(line('a'))}\n{torn}")
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done == {"a"}
        results_file.add(line("b"))
    assert ids(path) == ["a", "b"]


def test_an_existing_file_is_not_overwritten(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.add(line("a"))
    with pytest.raises(StoreError, match="--resume"), ResultsFile(path):
        pass
    assert ids(path) == ["a"]


def test_an_existing_file_is_kept_when_all_is_asked_anew(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.add(line("a"))
    with ResultsFile(path, anew=True) as results_file:
        results_file.add(line("b"))
    assert (ids(path), ids(path.with_name("answers.jsonl.old"))) == (["b"], ["a"])


def test_nothing_is_put_beside_a_foreign_file(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(StoreError, match="is no results file"), ResultsFile(path, resume=True):
        pass
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_damaged_line_costs_its_answer_alone(path: Path) -> None:
    path.write_text("\n".join([HEAD, json.dumps(line("a")), "\0garbage", json.dumps(line("c")), ""]))
    with ResultsFile(path, resume=True) as results_file:
        assert (results_file.done, results_file.damaged) == ({"a", "c"}, [3])
        assert [record["id"] for record in results_file.records()] == ["a", "c"]


def test_answers_of_another_run_are_refused_with_what_differs(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.bind({"model": "a", "version": "1"})
        results_file.add(line("a"))
    with ResultsFile(path, resume=True) as results_file:
        results_file.bind({"model": "a", "version": "1"})
        with pytest.raises(StoreError, match=r"model \"a\", now \"b\".*--anew"):
            results_file.bind({"model": "b", "version": "1"})


def test_a_newer_file_is_refused(path: Path) -> None:
    path.write_text(json.dumps({"code_chains_results": 99, "run": {}}) + "\n")
    with pytest.raises(StoreError, match="newer version"), ResultsFile(path, resume=True):
        pass


def test_artifacts_are_files_and_come_back(path: Path) -> None:
    artifact = {"name": "a.png", "media_type": "image/png", "base64": base64.b64encode(b"png").decode()}
    with ResultsFile(path) as results_file:
        results_file.add(line("../x", execution={"artifacts": [artifact]}))
        (record,) = results_file.records()
        (stored,) = record["computed"]["execution"]["artifacts"]
        assert (results_file.artifacts_folder / stored["file"]).read_bytes() == b"png"
        assert with_artifacts(record["computed"], results_file.artifacts_folder)["execution"][
            "artifacts"
        ] == [artifact]


@pytest.mark.parametrize("content", ["mine\n", "[1]\n", '{"query": "x"}\n', "<html>", "id,query\n"])
def test_a_foreign_file_is_left_unchanged(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(StoreError, match="is no results file"), ResultsFile(path, resume=True):
        pass
    assert path.read_text() == content


def test_only_one_process_writes(path: Path) -> None:
    with (
        ResultsFile(path),
        pytest.raises(StoreError, match="another process"),
        ResultsFile(path, resume=True),
    ):
        pass


@pytest.mark.parametrize("name", [os.symlink, os.link])
def test_a_file_has_one_writer_under_all_of_its_names(path: Path, name: Any) -> None:
    other = path.with_name("other.jsonl")
    with ResultsFile(path) as results_file:
        results_file.add(line("a"))
        name(path, other)
        with pytest.raises(StoreError, match="another process"), ResultsFile(other, resume=True):
            pass
    with ResultsFile(other, resume=True) as results_file:
        assert results_file.done == {"a"}


def test_a_lock_that_somebody_removed_beside_it_changes_nothing(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.add(line("a"))
        for file in path.parent.glob("*.lock"):
            file.unlink()
        with pytest.raises(StoreError, match="another process"), ResultsFile(path, resume=True):
            pass


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    other = path.with_name("new")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def rename(path: Path) -> None:
    path.rename(path.with_name("elsewhere.jsonl"))


@pytest.mark.parametrize("displace", [remove, replace, rename])
def test_answers_go_on_in_a_file_beside_one_that_is_displaced(path: Path, displace: Any) -> None:
    with (  # noqa: PT012 - It is the end that raises.
        pytest.raises(
            StoreError, match=r"while it was written\. The answers are in .*answers\.jsonl\.rescued"
        ),
        ResultsFile(path) as results_file,
    ):
        results_file.add(line("a"))
        displace(path)
        results_file.add(line("b"))
        results_file.add(line("c"))
    (rescued,) = path.parent.glob("*.rescued*")
    rescued.replace(path)
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done == {"a", "b", "c"}


def test_answers_stay_in_a_file_whose_folder_is_moved(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    with (  # noqa: PT012 - It is the end that raises.
        pytest.raises(StoreError, match="wherever it is now"),
        ResultsFile(folder / "a.jsonl") as results_file,
    ):
        results_file.add(line("a"))
        folder.rename(tmp_path / "there")
        results_file.add(line("b"))
    assert ids(tmp_path / "there" / "a.jsonl") == ["a", "b"]


@pytest.mark.parametrize("rest", [0, 9], ids=["between lines", "within a line"])
def test_a_file_that_is_cut_keeps_what_comes(path: Path, rest: int) -> None:
    with (  # noqa: PT012 - It is the end that raises.
        pytest.raises(StoreError, match="was cut while it was written"),
        ResultsFile(path) as results_file,
    ):
        results_file.add(line("a"))
        os.truncate(path, len(HEAD) + 1 + rest)
        results_file.add(line("b"))
        assert results_file.done == {"b"}
    (rescued,) = path.parent.glob("*.rescued*")
    assert ids(rescued) == ["b"]


@pytest.mark.parametrize("text", ["note\n", "half a line"])
def test_what_somebody_appends_stays_and_answers_follow_it(path: Path, text: str) -> None:
    with ResultsFile(path) as results_file:
        results_file.add(line("a"))
        with path.open("a") as file:
            file.write(text)
        results_file.add(line("b"))
    lines = path.read_text().splitlines()
    assert lines[2] == text.strip()
    assert [json.loads(lines[number])["id"] for number in (1, 3)] == ["a", "b"]


def refuse(*arguments: Any) -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("is_cut_off", [True, False])
def test_wherever_the_disk_is_full_no_answer_is_lost_and_none_is_half_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_cut_off: bool
) -> None:
    with ResultsFile(path) as results_file:
        results_file.add(line("a"))
        complete = path.read_bytes()
        for size in range(len(complete), len(complete) + 12):
            with monkeypatch.context() as patch, room(size):
                if not is_cut_off:
                    patch.setattr(os, "ftruncate", refuse)
                with pytest.raises(StoreError, match=r"answers are complete.*--resume"):
                    results_file.add(line("b", n=1))
            copy = path.with_name("copy")
            copy.write_bytes(path.read_bytes())
            with ResultsFile(copy, resume=True) as resumed:
                assert resumed.done == {"a"}
        results_file.add(line("c"))
    assert ids(path) == ["a", "c"]


@pytest.mark.parametrize("call", ["fsync", "ftruncate", "both"])
def test_a_disk_that_fails_later_leaves_a_file_that_can_be_resumed(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with ResultsFile(path) as results_file:
        results_file.add(line("a"))
        with monkeypatch.context() as patch:
            for name in ("fsync", "ftruncate") if call == "both" else (call,):
                patch.setattr(os, name, refuse)
            with suppress(StoreError):
                results_file.add(line("b"))
        results_file.add(line("c"))
    with ResultsFile(path, resume=True) as results_file:
        assert {"a", "c"} <= results_file.done


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
def test_a_small_disk_of_the_system_keeps_its_answers(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    try:
        lines = (line(str(number), text="x" * 3000) for number in range(100))
        with ResultsFile(disk / "a.jsonl") as results_file, pytest.raises(StoreError, match="No space"):
            deque(map(results_file.add, lines))
        count = len(results_file.done)
        subprocess.run(["mount", "-o", "remount,size=1m", str(disk)], check=True)
        with ResultsFile(disk / "a.jsonl", resume=True) as results_file:
            assert len(results_file.done) == count > 10
            results_file.add(line("next"))
        assert ids(disk / "a.jsonl") == [*map(str, range(count)), "next"]
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_failures_that_cannot_be_written_do_not_hide_what_ended_the_run(
    path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", refuse)
    with (
        create_code_chain(model, executor=ScriptedExecutor(lambda code: "15"), interpret=False) as chain,
        ResultsFile(path) as results_file,
        pytest.raises(StoreError, match=re.escape(f"{path} cannot be written")),
    ):
        list(map_questions(chain, ["one"], results_file=results_file))


def test_failures_are_stored_until_they_are_answered(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.fail(line("a", error="no model"))
        results_file.write_failures()
        assert results_file.failures == {"a": line("a", error="no model")}
    with ResultsFile(path, resume=True) as results_file:
        results_file.add(line("a"))
        results_file.write_failures()
        assert results_file.failures == {}


def test_failures_of_earlier_runs_are_known_until_they_are_answered(path: Path) -> None:
    with ResultsFile(path) as results_file:
        results_file.fail(line("a", is_lost=True))
        results_file.fail(line("b"))
        results_file.write_failures()
    with ResultsFile(path, resume=True) as results_file:
        results_file.add(line("b"))
        results_file.write_failures()
    with ResultsFile(path, resume=True) as results_file:
        assert list(results_file.failures) == ["a"]


@pytest.mark.parametrize("line", ["[]", "{", "3"])
def test_a_damaged_file_of_failures_is_ignored(path: Path, line: str) -> None:
    Path(f"{path}.failed").write_text(line)
    with ResultsFile(path) as results_file:
        assert results_file.failures == {}


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"is a folder\. Name a file in it"),
        ResultsFile(tmp_path, resume=True),
    ):
        pass


def test_any_text_is_preserved(path: Path) -> None:
    record = line("é", answer="\u2028素数\n")
    with ResultsFile(path) as results_file:
        results_file.add(record)
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done == {"é"}


# -- files that somebody else wrote ----------------------------------------------------------------------------------------


def written(path: Path, *lines: str) -> None:
    path.write_text("".join(f"{text}\n" for text in (HEAD, *lines)))


def made(question_id: str, file: Any) -> str:
    artifact = {"name": "x", "media_type": "text/plain", "file": file}
    return json.dumps(line(question_id, execution={"artifacts": [artifact]}))


@pytest.mark.parametrize(
    "file",
    [
        "{victim}/x",
        "../victim/x",
        "link/x",
        "../x",
        "./x",
        "/x",
        "..",
        "a/../../victim/x",
        "..\\victim/x",
        "a\0/x",
    ],
)
def test_replacing_an_answer_of_somebody_else_removes_no_folder_of_the_user(path: Path, file: str) -> None:
    victim = path.parent / "victim"
    victim.mkdir()
    (victim / "x").write_text("secret")
    Path(f"{path}.files").mkdir()
    Path(f"{path}.files", "link").symlink_to(victim)
    written(path, made("a", file.format(victim=victim)))
    with ResultsFile(path, resume=True) as results_file:
        (record,) = results_file.records()
        shown = with_artifacts(record["computed"], results_file.artifacts_folder)
        assert shown["execution"]["artifacts"][0]["base64"] == ""
        results_file.add({**line("a", n=2), "given": {"query": "?", "own": {}, "digest": "other"}})
    assert (victim / "x").read_text() == "secret"
    assert Path(f"{path}.files").is_dir()


def test_nothing_is_removed_read_or_written_through_a_link_in_place_of_the_folder(path: Path) -> None:
    victim = path.parent / "victim"
    (victim / "sub").mkdir(parents=True)
    (victim / "sub" / "x").write_text("secret")
    Path(f"{path}.files").symlink_to(victim)
    written(path, made("a", "sub/x"))
    artifact = {"name": "x", "media_type": "text/plain", "base64": "eA=="}
    with ResultsFile(path, resume=True) as results_file:
        (record,) = results_file.records()
        shown = with_artifacts(record["computed"], results_file.artifacts_folder)
        assert shown["execution"]["artifacts"][0]["base64"] == ""
        results_file.add({**line("a"), "given": {"query": "?", "own": {}, "digest": "other"}})
        with pytest.raises(StoreError, match="symbolic link"):
            results_file.add(line("b", execution={"artifacts": [artifact]}))
    assert [item.name for item in victim.iterdir()] == ["sub"]
    assert (victim / "sub" / "x").read_text() == "secret"


@pytest.mark.parametrize(
    "place", [("given",), ("given", "query"), ("given", "own"), ("given", "digest"), ("computed",)]
)
@pytest.mark.parametrize("value", [None, 5, "x", [], [5], {"a": 5}, True])
def test_a_line_with_another_type_in_it_costs_itself_alone(
    path: Path, place: tuple[str, ...], value: Any
) -> None:
    broken: Any = line("a")
    inner = broken
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    written(path, json.dumps(broken), json.dumps(line("b")))
    with ResultsFile(path, resume=True) as results_file:
        assert results_file.done - {"a"} == {"b"}
        assert len(list(results_file.records())) == len(results_file.done)
        assert export_table(path, path.with_name("a.csv")) == len(results_file.done)


COMPUTED = (
    "verdict",
    "execution",
    "usage",
    "notes",
    "attempts",
    "seconds",
    "error",
    "answer",
    "output",
    "value",
)


@pytest.mark.parametrize("key", COMPUTED)
@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet", ".jsonl"])
def test_no_type_of_what_was_computed_breaks_a_table(path: Path, key: str, suffix: str) -> None:
    values: list[object] = [
        None,
        5,
        2**70,
        float("nan"),
        "x\ud800\x1b",
        [],
        [5],
        [[[]]],
        {"status": 5},
        {"artifacts": [5]},
        True,
    ]
    written(path, *(json.dumps(line(str(number), **{key: value})) for number, value in enumerate(values)))
    assert 0 < export_table(path, path.with_suffix(suffix)) <= len(values)


@pytest.mark.parametrize("content", ["[" * 200_000, '{"id":' * 10_000, '{"id": "a"', "\0" * 1000])
def test_deep_and_broken_lines_are_damaged(path: Path, content: str) -> None:
    written(path, content, json.dumps(line("b")))
    Path(f"{path}.failed").write_text(f"{content}\n")
    with ResultsFile(path, resume=True) as results_file:
        assert (results_file.damaged, results_file.done, results_file.failures) == ([2], {"b"}, {})
        assert export_table(path, path.with_suffix(".csv")) == 1


def test_failures_behind_a_link_or_a_fifo_are_not_read(path: Path) -> None:
    written(path, json.dumps(line("b")))
    (path.parent / "other").write_text(json.dumps(line("stolen")) + "\n")
    for make in (lambda failed: failed.symlink_to(path.parent / "other"), os.mkfifo):
        make(Path(f"{path}.failed"))
        with ResultsFile(path, resume=True) as results_file:
            assert results_file.failures == {}
        Path(f"{path}.failed").unlink()


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("nowhere")], ids=["fifo", "dangling"]
)
def test_what_is_no_file_is_refused_and_left(path: Path, make: Any) -> None:
    make(path)
    with pytest.raises(StoreError, match="no regular file"), ResultsFile(path, resume=True):
        pass
    assert not (path.parent / "nowhere").exists()


def test_an_answer_that_is_none_says_which_line_to_remove(path: Path) -> None:
    written(path, json.dumps(line("a", verdict={"status": "splendid"})))
    with ResultsFile(path, resume=True) as results_file, pytest.raises(StoreError, match="Remove its line"):
        results_file.answer_to(Question("a", {"query": "?"}), next(results_file.records()))


def test_a_truth_value_is_no_number_and_a_name_of_a_folder_has_an_end(path: Path) -> None:
    artifact = {"file": "a" * 5_000 + "/x", "name": "x", "media_type": "text/plain"}
    written(
        path,
        json.dumps(line("a", usage={"model_calls": True})),
        json.dumps(line("b", execution={"artifacts": [artifact]})),
    )
    with ResultsFile(path, resume=True) as results_file:
        assert (results_file.damaged, results_file.without_files) == ([2], {"b"})


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 3], "int64"),
        ([1, 2.5], "double"),
        ([True, False], "bool"),
        ([1, "a"], "string"),
        ([1, True], "string"),
        ([2**70, 1], "string"),
        ([[1]], "string"),
        ([None], "string"),
    ],
)
def test_values_of_one_type_are_a_column_of_it(path: Path, values: list[Any], kind: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    written(path, *(json.dumps(line(str(number), value=value)) for number, value in enumerate(values)))
    assert export_table(path, path.with_name("a.parquet")) == len(values)
    assert str(parquet.read_schema(path.with_name("a.parquet")).field("value").type) == kind


def test_a_table_has_the_names_of_sources(path: Path) -> None:
    written(path, json.dumps(line("a", sources=[{"name": "sums.py"}, {"name": "means.py"}])))
    export_table(path, path.with_name("a.jsonl"))
    assert json.loads(path.with_name("a.jsonl").read_text())["sources"] == "sums.py\nmeans.py"
