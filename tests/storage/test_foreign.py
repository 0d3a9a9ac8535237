"""The gate for files of others: only regular files within limits are read, and nothing outside of their folder."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from code_chains.errors import InputError
from code_chains.storage import foreign
from code_chains.storage.foreign import (
    find_below,
    make_child,
    open_file,
    parse_json,
    read_bytes,
    read_lines,
    read_text,
    remove_child,
)
from code_chains.storage.foreign_yaml import parse_yaml

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no FIFOs and few links")
MB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, beside one with a secret."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    for path in (folder, outside):
        path.mkdir()
        (path / "file").write_text("content")
    return folder


def a_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "outside" / "file")


def a_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def a_loop(path: Path) -> None:
    path.symlink_to(path)


def a_link_to_proc(path: Path) -> None:
    path.symlink_to("/proc/self/environ")


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(path.parent)
        listener.bind(path.name)


@pytest.mark.parametrize(
    "make",
    [a_link, a_dangling_link, a_loop, a_link_to_proc, a_link_to_a_device, a_socket, os.mkfifo, os.mkdir],
    ids=lambda make: make.__name__,
)
def test_what_is_no_regular_file_of_the_folder_is_not_read(
    folder: Path, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    make(folder / "x")
    with pytest.raises(OSError, match=r"."):
        open_file(folder / "x", below=folder)
    with pytest.raises(OSError, match=r"."):
        find_below(folder, "x")


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "/etc/passwd",
        "../outside/file",
        "x/../../outside/file",
        "sub/file",
        "C:\\x",
        "C:x",
        "..\\outside\\file",
        "\\\\host\\share\\x",
        "a\0b",
        "file/",
        "file/x",
        "\ud800",
        "x" * 5000,
    ],
)
def test_a_name_that_leads_elsewhere_finds_nothing(folder: Path, name: str) -> None:
    (folder / "sub").symlink_to(folder.parent / "outside")
    if name == "file/":  # The same file by another name.
        assert find_below(folder, name) == folder / "file"
        return
    with pytest.raises((OSError, UnicodeEncodeError)):
        find_below(folder, name)


def test_a_file_is_read_by_its_name_in_the_folder_whatever_link_leads_to_the_folder(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    assert find_below(folder.parent / "link", "file").read_text() == "content"


@pytest.mark.parametrize(
    "name", ["file", "sub", "link", "..", ".", "", "../outside", "sub/inner", "/", "a\0"]
)
def test_only_a_folder_directly_in_the_folder_is_removed(folder: Path, name: str) -> None:
    (folder / "sub" / "inner").mkdir(parents=True)
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "sub" / "out").symlink_to(folder.parent / "outside")
    remove_child(folder, name)
    remove_child(folder / "link", "..")
    assert (folder.parent / "outside" / "file").exists()
    assert (folder / "file").exists()
    assert (folder / "sub" / "inner").exists() is (name != "sub")


def test_nothing_is_removed_or_written_through_a_link_to_the_folder_of_folders(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder.parent / "link").symlink_to(folder)
    remove_child(folder.parent / "link", "sub")
    assert (folder / "sub").is_dir()
    with pytest.raises(OSError, match="symbolic link"):
        make_child(folder.parent / "link", "new")


def test_size_is_looked_at_before_a_file_is_read(folder: Path) -> None:
    with (folder / "sparse").open("wb") as file:
        file.truncate(90 * MB)
    with pytest.raises(InputError, match="larger than"):
        read_bytes(folder / "sparse")
    assert [len(line) for _, line in read_lines(folder / "sparse")] == [1]


def test_a_line_that_is_too_long_costs_itself_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "MAX_BYTES", 8)
    (folder / "file").write_bytes(b"1\n" + b"x" * 99 + b"\n2\n" + b"y" * 8)
    assert list(read_lines(folder / "file")) == [(0, b"1\n"), (2, b"\0\n"), (102, b"2\n"), (104, b"\0")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_as_editors_save_it(folder: Path, encoding: str) -> None:
    (folder / "file").write_text("ü", encoding=encoding)
    assert read_text(folder / "file") == "ü"


def test_text_in_another_encoding_is_refused_with_its_line(folder: Path) -> None:
    (folder / "file").write_bytes("a\nü".encode("latin-1"))
    with pytest.raises(InputError, match="see line 2"):
        read_text(folder / "file")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 300 + "]" * 300,
        "[" * 10**6,
        '{"a":' * 10**5,
        "[" + "0," * 2 * 10**6 + "0]",
        "[" + '"",' * 2 * 10**6,
        "9" * 5000,
        "",
        "\0",
        "{",
        '"\ud800',
    ],
    ids=range(10),
)
def test_json_is_counted_before_it_is_parsed(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize(
    "value", [json.loads("[" * 199 + "]" * 199), "[" * 1000, ['"[,{\\' * 99] * 99, {"a": [1]}]
)
def test_brackets_and_commas_of_texts_count_for_nothing(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[NaN]", "[-Infinity]"])
def test_what_two_readers_take_differently_is_refused_where_it_counts(text: str) -> None:
    parse_json(text)
    with pytest.raises(ValueError, match=r"."):
        parse_json(text, is_strict=True)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x",
        "[" * 99 + "]" * 99,
        "- " * 999,
        "{a: 1, a: 2}",
        "a: {b: 1, b: 2}",
        "a: " + "9" * 5000,
        "a: 1" + ":1" * 200_000,
        "? [a]\n: b",
        "a: 2024-99-99",
        "a: !!python/name:os.system x",
        "\0",
        "a: \ud800",
        "[" + "1," * 30_000 + "]",
    ],
    ids=range(13),
)
def test_yaml_is_counted_before_it_is_parsed(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_yaml(text)


def test_yaml_comes_with_the_lines_of_its_keys() -> None:
    assert parse_yaml("a: 1\n\nb: [x]\n") == ({"a": 1, "b": ["x"]}, {"a": 0, "b": 2})
