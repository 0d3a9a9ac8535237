"""Files and figures of answers on the disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from code_chains.apps.artifact_folder import ArtifactFolder
from code_chains.errors import InputError, StoreError
from code_chains.state import Artifact
from code_chains.storage.files import atomic_write
from tests.conftest import room


def artifact(name: str = "plot.png", data: bytes = b"1") -> Artifact:
    return Artifact.of(name, "image/png", data)


# -- one artifact --------------------------------------------------------------------------------------------


def test_an_artifact_is_saved_in_a_folder_under_its_own_name(tmp_path: Path) -> None:
    path = artifact().save(tmp_path)
    assert (path, path.read_bytes()) == (tmp_path / "plot.png", b"1")


def test_an_artifact_gets_a_number_if_its_name_is_taken(tmp_path: Path) -> None:
    assert [artifact(data=data).save(str(tmp_path)).name for data in (b"1", b"2")] == [
        "plot.png",
        "plot-2.png",
    ]
    assert (tmp_path / "plot.png").read_bytes() == b"1"


@pytest.mark.parametrize("size", [0, 5, 300_000])
def test_an_artifact_for_which_there_is_no_room_leaves_no_part_of_it(tmp_path: Path, size: int) -> None:
    with room(size), pytest.raises(InputError, match="cannot be saved"):
        artifact(data=b"1" * (size + 1)).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_replaced_stays_as_it_was_where_there_is_no_room(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"before")
    with room(10), pytest.raises(OSError, match="large"):
        atomic_write(tmp_path / "a", b"1" * 11)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"before")]


def test_an_artifact_never_replaces_a_file_that_is_named(tmp_path: Path) -> None:
    artifact().save(tmp_path / "mine.png")
    with pytest.raises(InputError, match=r"mine\.png' exists"):
        artifact(data=b"2").save(tmp_path / "mine.png")
    assert (tmp_path / "mine.png").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x"])
def test_a_name_outside_the_folder_is_not_saved(name: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    with pytest.raises(InputError, match="cannot be called"):
        artifact(name).save(tmp_path / "files")
    assert list(tmp_path.rglob("x")) == []


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "a.txt").symlink_to(tmp_path / "mine")
    (tmp_path / "b.txt").symlink_to(tmp_path / "nowhere")
    assert artifact("a.txt").save(tmp_path).name == "a-2.txt"
    assert artifact("b.txt").save(tmp_path).name == "b-2.txt"
    assert ((tmp_path / "mine").read_text(), (tmp_path / "nowhere").exists()) == ("mine", False)


@pytest.mark.parametrize("path", ["missing/plot.png", "plot.png/inside.png"])
def test_a_path_that_cannot_be_written_is_an_error(tmp_path: Path, path: str) -> None:
    artifact().save(tmp_path)
    with pytest.raises(InputError, match="cannot be saved"):
        artifact().save(tmp_path / path)


# -- those of answers ----------------------------------------------------------------------------------------


def test_nothing_is_made_without_artifacts(tmp_path: Path) -> None:
    assert ArtifactFolder(tmp_path / "files").save([]) == ""
    assert not (tmp_path / "files").exists()


def test_the_message_says_where_the_files_are(tmp_path: Path) -> None:
    folder = ArtifactFolder(tmp_path / "files")
    message = folder.save([artifact(), artifact("plots/of 2024.png", b"2")])
    assert message == f"Saved in {tmp_path / 'files'}: plot.png, plots-of-2024.png (plots/of 2024.png)"


def test_names_stay_as_the_answer_has_them(tmp_path: Path) -> None:
    folder = ArtifactFolder(tmp_path)
    folder.save([artifact()])
    assert (
        folder.save([artifact("new.png"), artifact(data=b"2")])
        == f"Saved in {tmp_path / '2'}: new.png, plot.png"
    )
    assert [path.read_bytes() for path in (tmp_path / "plot.png", tmp_path / "2" / "plot.png")] == [
        b"1",
        b"2",
    ]


def test_the_same_files_are_saved_once(tmp_path: Path) -> None:
    messages = {ArtifactFolder(tmp_path).save([artifact()]) for _ in range(3)}
    assert (len(messages), [path.name for path in tmp_path.iterdir()]) == (1, ["plot.png"])


def test_equal_names_of_one_answer_are_told_apart(tmp_path: Path) -> None:
    ArtifactFolder(tmp_path).save([artifact("a/b.png", b"1"), artifact("a-b.png", b"2")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-b-2.png", "a-b.png"]


@pytest.mark.parametrize("place", ["file", "file/inside", "/proc/x"])
def test_files_are_saved_elsewhere_where_the_folder_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = ArtifactFolder(tmp_path / place)
    message = folder.save([artifact()])
    saved = tmp_path / "data" / "code_chains" / "answer-files"
    assert "cannot be made" in message
    assert message.endswith(f"Saved in {saved}: plot.png")
    assert (saved / "plot.png").read_bytes() == b"1"


def test_without_any_other_folder_they_are_saved_in_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/proc/x")
    (path,) = ArtifactFolder(Path("/proc/x")).save_all([artifact()])
    assert path.is_relative_to(tempfile.gettempdir())
    assert path.read_bytes() == b"1"


def test_a_disk_without_room_is_no_fault_of_the_command(tmp_path: Path) -> None:
    with room(0), pytest.raises(StoreError, match="Free space"):
        ArtifactFolder(tmp_path).save([artifact()])


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be made"):
        ArtifactFolder(tmp_path / "file").check()
