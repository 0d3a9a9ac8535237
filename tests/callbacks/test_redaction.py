"""Secrets are left out, ordinary code stays as it is, and no text takes long."""

from __future__ import annotations

import json
import logging
import sys
import time
import unicodedata

import pytest

from code_chains.callbacks.redaction import PrintableFormatter, describe_error
from code_chains.records.printable import escape_invisible, printable, without_secrets
from tests.conftest import HOSTILE

SECRETS = [
    "ghp_abcdefghijklmnopqrstuvwxyz012345",
    "AKIAIOSFODNN7EXAMPLE",
    "sk-proj-1234567890abcdef",
    "lsv2_pt_0123456789abcdef0123456789abcdef_0123456789",
    "Authorization: Bearer abcdef.ghijkl",
    "Authorization: Basic dXNlcjpw",
    "postgres://ann:pa55word@db/x",
    "redis://:pw@host",
    "postgres://ann:p@ss@db/x",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    'client_secret: "tiny"',
    "password: hunter2000",
    "PASSWORD=hunter2",
    'api_key = """x"""',
    "token = f'abc'",
    "token = b'abc'",
    "api_key: str = 'abc'",
    "os.environ['API_KEY'] = 'abc'",
]
ORDINARY = [
    "tokens = text.split()",
    "tokens = 'a b c'",
    "tokenizer='gpt2'",
    "key = 'region'",
    "sk = 3",
    "https://example.org/a:b",
    "data['token']",
    "token = next_token()",
    "def login(password: str) -> None:",
    "connect(password=password)",
    "hf_transfer_enabled_now",
    "ls_results_by_country",
    "pk_column_names_here",
    "Basic authentication",
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_looks_like_a_secret_is_left_out(text: str) -> None:
    hidden = without_secrets(text)
    assert "[secret]" in hidden
    assert not any(part in hidden for part in ("abc", "hunter", "ss@", "tiny", "pw@", "MIIE", "dXN"))


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_code_stays_as_it_is(text: str) -> None:
    assert without_secrets(text) == text


def test_values_of_the_environment_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK_PASSWORD", "correct horse")
    assert without_secrets("it is correct horse, is it?") == "it is [secret], is it?"


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "token-",
        "a-",
        "eyJ-",
        "://a:",
        "api_key: ",
        "-----BEGIN PRIVATE KEY-----",
        "token='",
        "sk-",
        "x",
        "bearer ",
        'secret"""',
        "token: s ",
    ],
)
def test_no_text_takes_long(part: str) -> None:
    began = time.process_time()
    without_secrets(part * (500_000 // len(part)))
    assert time.process_time() - began < 5


def test_a_message_that_is_printed_steers_no_terminal_and_shows_no_key() -> None:
    assert printable(HOSTILE) == "\ufffd]0;owned\ufffd \ufffd2J \ufffd [secret]"


def test_a_log_line_is_printed_without_either() -> None:
    record = logging.LogRecord("x", logging.WARNING, "x.py", 1, "It said: %s", (HOSTILE,), None)
    assert PrintableFormatter().format(record) == f"It said: {printable(HOSTILE)}"


@pytest.mark.slow
def test_an_escaped_document_is_the_same_and_shows_all_it_has() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    shown = escape_invisible(json.dumps(every, ensure_ascii=False))
    assert json.loads(shown) == json.loads(json.dumps(every))
    assert {
        char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    } == set()


@pytest.mark.parametrize("text", ["año", "日本語", "🙂", "שלום", '{"a":\n 1}'])
def test_letters_of_all_scripts_stay_legible_in_a_document(text: str) -> None:
    assert escape_invisible(text) == text


def test_no_secret_is_cut_in_half_by_the_limit_of_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "abcdefgh" * 5
    monkeypatch.setenv("SERVICE_API_KEY", secret)

    class RefusedError(Exception):
        status_code = 400
        request = type("Request", (), {"url": "http://127.0.0.1:9/v1"})

    for length in range(600, 660):
        assert secret[:20] not in describe_error(RefusedError(f"{'x ' * (length // 2)}{secret}"))


def test_a_message_is_cut_before_it_is_read() -> None:
    start = time.process_time()
    assert len(printable("-eyJ" * 250_000, 1000)) == 1000
    assert time.process_time() - start < 0.5
    assert "eyJ" not in printable(f"{'x ' * 45}eyJ{'a' * 40}.{'b' * 40}.c", 100)
