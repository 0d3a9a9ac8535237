"""Which encoding a text file is in: what is read is right, or said not to be certain."""

from __future__ import annotations

import gzip
import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpora import read_corpus
from benchmarks.encodings import VERDICTS, count
from code_chains.profiles.inside.encoding import SAMPLED_BYTES, Text, decode
from code_chains.profiles.inside.program import profile_file
from code_chains.profiles.report import render_profile

pytest.importorskip("chardet")
pytest.importorskip("pandas")
POLISH = "id;name\n1;Łukasz\n2;Jan\n"
WORDS = {
    "cp1250": "Łukasz Wójcik Dąbrowska Świętokrzyska książka źródło",
    "cp1254": "Ayşe Işıl Muğla Öztürk Çağlar kırmızı",
    "cp1253": "Γιώργος Ελένη Αθήνα Πάτρα καρέκλα βιβλίο",
    "cp1255": "יוסף רבקה אברהם ירושלים חיפה כיסא",
    "cp1256": "محمد فاطمة القاهرة بغداد كتاب طاولة",
    "cp850": "Größe Käse Müller Schröder Überweisung Öl",
    "mac-roman": "Größe Käse Müller Schröder Überweisung Öl",
    "koi8-r": "Юрий Наталья Москва Казань товар Щербаков",
    "big5hkscs": "臺北 高雄市 軟體開發 貿易有限公司 張偉 綠色",
    "euc_jis_2004": "田中太郎 大阪市 有限会社サクラ 名古屋 椅子 緑色",
    "cp949": "김철수 부산광역시 주식회사 초록색 설탕 화요일",
    "cp874": "สมชาย เชียงใหม่ ธนาคาร หนังสือ น้ำตาล ร้านค้า",
}


def read(data: bytes, **options: Any) -> Text:
    text = decode(data, **options)
    assert text is not None
    return text


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "chardet" else find(name))


@pytest.mark.parametrize("encoding", WORDS)
def test_words_of_a_language_tell_its_encoding(encoding: str) -> None:
    data = WORDS[encoding].replace(" ", "\n").encode(encoding)
    assert read(data).encoding == encoding


def test_no_table_is_wrong_and_certain() -> None:
    counts = count(read_corpus("encodings")[::5], "development").values()
    assert [found[VERDICTS[3]] for found in counts] == [0, 0, 0]


@pytest.mark.parametrize(
    "text", ["größe\nö\nä\nü\n", "t\n20 °C\n3 m²\n", "n\n5,00 €\n", "NAME\nMÜLLER\nÖZDEMIR\n"]
)
def test_western_texts_are_certain(text: str) -> None:
    found = read(text.encode("cp1252"))
    assert (found.text, found.alternatives) == (text, ())


@pytest.mark.usefixtures("without_library")
def test_without_the_library_what_several_encodings_can_read_is_not_certain() -> None:
    assert read(POLISH.encode("cp1250")).alternatives


@pytest.mark.usefixtures("without_library")
def test_without_the_library_words_that_one_encoding_can_read_are_certain() -> None:
    assert read("größe\nö\nä\nü\n".encode("latin-1")).notes == ()


def test_a_doubt_names_a_word_in_both_readings() -> None:
    note = read("Molière\nRené\n".encode("cp1252")).notes[0]
    assert "is not certain" in note
    assert '"Molière" instead of "Moličre"' in note


@pytest.fixture
def kinds(tmp_path: Path) -> dict[str, Path]:
    """One word in tables, text and JSON."""
    table, objects = POLISH.encode("cp1250"), '{"name": "Łukasz"}\n'.encode("cp1250")
    contents = {"a.csv": table, "a.csv.gz": gzip.compress(table), "a.txt": table.replace(b";", b" ")}
    contents |= {"a.json": objects, "a.jsonl": objects * 2}
    paths = {name: tmp_path / name for name in contents}
    for name, content in contents.items():
        paths[name].write_bytes(content)
    return paths


def profiled(kinds: dict[str, Path], *, schema_only: bool) -> dict[str, str]:
    profiles = {name: profile_file(str(path)) for name, path in kinds.items()}
    return {
        name: render_profile(name, profile, schema_only=schema_only, max_chars=2000) or ""
        for name, profile in profiles.items()
    }


def test_a_doubt_is_a_note_of_every_kind_of_text(kinds: dict[str, Path]) -> None:
    profiles = profiled(kinds, schema_only=False)
    assert [name for name in kinds if "is not certain" not in profiles[name]] == []


def test_a_doubt_shows_no_word_where_only_the_schema_may_be(kinds: dict[str, Path]) -> None:
    profiles = profiled(kinds, schema_only=True)
    assert [name for name in kinds if "ukasz" in profiles[name]] == []


def test_broken_characters_are_counted_and_placed() -> None:
    found = read(b"id;name\n" + "1;Größe\n".encode() * 9 + b"2;x\xff\n3;\xfe\n")
    assert (found.encoding, found.errors) == ("utf-8", "replace")
    assert "2, first in line 11" in found.notes[0]


def test_a_last_character_that_is_cut_is_broken() -> None:
    assert read("Größe\nKäse\nÖ".encode()[:-1]).errors == "replace"


def test_the_end_of_what_was_read_of_a_long_file_is_not_broken() -> None:
    assert read("Größe\nKäse\nÖ".encode()[:-1], is_complete=False).notes == ()


@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_text_that_is_broken_is_read_by_its_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes('{"a": "Größe", "b": "'.encode() + b'\xff"}')
    profile = profile_file(str(path)) or {"read": [""]}
    assert 'errors="replace"' in profile["read"][-1]


def test_words_of_another_encoding_in_utf8_are_named() -> None:
    found = read("Größe\nKäse\nÖl\n".encode() + "Straße\nBär\n".encode("cp1252"))
    assert any('in latin-1, such as "Straße"' in note for note in found.notes)


def test_words_of_utf8_in_another_encoding_are_noted() -> None:
    found = read("Größe\n".encode() + "Straße\nBär\nKäse\nMüller\nÖl\n".encode("cp1252"))
    assert "some words are in utf-8, the others are not" in found.notes


def test_a_broken_word_of_korean_is_no_utf8() -> None:
    assert read("책\n부산광역시\n".encode("euc_kr")).encoding != "utf-8"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["имя;сумма\nИван;1,5\n", "姓名,城市\n张伟,北京\n"])
def test_wide_characters_are_known_without_a_mark(text: str, encoding: str) -> None:
    assert read(text.encode(encoding)).text == text


@pytest.mark.parametrize("encoding", ["iso2022_jp", "hz", "utf-7"])
def test_encodings_made_of_ascii_are_no_ascii_for_certain(encoding: str) -> None:
    text = "name;n\nGröße;1\n" if encoding == "utf-7" else "中文,日本\n"
    assert read(text.encode(encoding)).text == text


@pytest.mark.parametrize("data", [b"a;+4930-1234\nb;+4912-77\n", b"\x1b[31merror\x1b[0m\n", b"~{ab}~ x\n"])
def test_ascii_that_looks_like_another_encoding_stays_ascii(data: bytes) -> None:
    assert read(data).notes == ()


def test_nul_characters_are_noted() -> None:
    assert read(b"a,b\n" * 100 + b"c\0,d\n").notes == ("NUL characters in it: 1",)


def test_a_word_far_from_the_beginning_is_looked_at() -> None:
    data = b"id;name\n" * SAMPLED_BYTES + "Łódź\nŚwięty\nżółw\n".encode("cp1250")
    assert read(data).encoding == "cp1250"


@pytest.mark.parametrize("part", [b"+abc", b"~{ab", b"\x1b$", b"\xe9a", b"a", b"\xff", "姓名".encode("gbk")])
def test_no_content_takes_long(part: bytes) -> None:
    data = part * ((8 << 20) // len(part)) + b"\xe9\n"
    began = time.process_time()
    decode(data)
    assert time.process_time() - began < 1
