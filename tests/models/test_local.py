"""The embedded model: a real server with real weights, or with random ones that need no network."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
import shutil
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from code_chains import create_code_chain
from code_chains.chains import GenerateChain
from code_chains.errors import WeightsError
from code_chains.executors import SandboxExecutor
from code_chains.language import detect_language
from code_chains.models.local import ChatLocal, _servers, load_local
from code_chains.storage.sqlite import SqliteStore
from tests.conftest import QUESTION

pytestmark = pytest.mark.timeout(900)
with_weights = pytest.mark.local_model
_WIDTH = 32
_TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
_FIELDS: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.context_length": 4096,
    "llama.embedding_length": _WIDTH,
    "llama.block_count": 1,
    "llama.feed_forward_length": _WIDTH,
    "llama.attention.head_count": 1,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": _TOKENS,
    "tokenizer.ggml.scores": [0.0] * len(_TOKENS),
    "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256,
}
_TENSORS = {
    "token_embd": (_WIDTH, len(_TOKENS)),
    "output_norm": (_WIDTH,),
    "output": (_WIDTH, len(_TOKENS)),
    "blk.0.attn_norm": (_WIDTH,),
    "blk.0.ffn_norm": (_WIDTH,),
    **{f"blk.0.attn_{name}": (_WIDTH, _WIDTH) for name in ("q", "k", "v", "output")},
    **{f"blk.0.ffn_{name}": (_WIDTH, _WIDTH) for name in ("gate", "up", "down")},
}


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _value(value: Any, integer_type: int = 4) -> bytes:
    """Return a typed value of a GGUF file: the number of its type, then its bytes. Integers are signed only in lists."""
    if isinstance(value, list):
        items = [_value(item, 5) for item in value]
        return (
            struct.pack("<I", 9)
            + items[0][:4]
            + struct.pack("<Q", len(items))
            + b"".join(i[4:] for i in items)
        )
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    return (
        struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", integer_type, value)
    )


def write_gguf(path: Path) -> None:
    """Write a language model of 100 KB: one layer of random weights, whose tokens are bytes."""
    head, data, rng = b"", b"", random.Random(7)
    for name, value in _FIELDS.items():
        head += _string(name) + _value(value)
    for name, shape in _TENSORS.items():
        head += _string(f"{name}.weight") + struct.pack(
            f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data)
        )
        size = math.prod(shape)
        data += struct.pack(f"<{size}f", *(rng.gauss(0, 0.1) for _ in range(size)))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(_TENSORS), len(_FIELDS)) + head
    path.write_bytes(head + bytes(-len(head) % 32) + data)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home-of-somebody") / "tiny.gguf"
    write_gguf(path)
    return path


@pytest.fixture(scope="module")
def tiny(weights: Path) -> ChatLocal:
    pytest.importorskip("xllamacpp")
    return load_local(f"gguf:{weights}", max_tokens=5)


def _key(model: ChatLocal) -> str:
    assert model.openai_api_key is not None
    return str(model.openai_api_key.get_secret_value())  # type: ignore[union-attr]


def ask_server(model: ChatLocal, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    return httpx.request(method, f"{model.openai_api_base}{path}", headers=headers, trust_env=False)


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    "path",
    [
        "/models",
        "/chat/completions",
        "/../props",
        "/../slots",
        "/../completion",
        "/../tokenize",
        "/../metrics",
    ],
)
def test_the_server_refuses_requests_without_its_key(tiny: ChatLocal, path: str) -> None:
    wrong = _key(tiny).swapcase()
    answers = [ask_server(tiny, path, method) for method in ("GET", "POST")]
    answers += [
        ask_server(tiny, path, authorization=f"Bearer {wrong}"),
        ask_server(tiny, path, **{"x-api-key": wrong}),
    ]
    assert {answer.status_code for answer in answers} == {401}


def test_the_holder_of_the_key_gets_answers(tiny: ChatLocal) -> None:
    assert tiny.invoke("hi").usage_metadata["output_tokens"] == 5  # type: ignore[index]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://localhost:3000", "http://127.0.0.1:1", "null"]
)
def test_no_web_page_may_read_responses(tiny: ChatLocal, origin: str) -> None:
    preflight = ask_server(tiny, "/chat/completions", "OPTIONS", origin=origin)
    response = ask_server(tiny, "/../health", origin=origin, host="evil.example")
    allowed = {response.headers.get("access-control-allow-origin", "") for response in (preflight, response)}
    assert (allowed, preflight.headers.get("access-control-allow-credentials")) == ({""}, "false")


def test_the_server_has_no_web_page(tiny: ChatLocal) -> None:
    assert ask_server(tiny, "/../").status_code == 404


def test_the_folder_of_the_weights_is_not_disclosed(tiny: ChatLocal) -> None:
    response = ask_server(tiny, "/models", authorization=f"Bearer {_key(tiny)}").text
    assert ("tiny.gguf" in response, "home-of-somebody" in response) == (True, False)
    assert tiny.invoke("hi").response_metadata["model_name"] == "tiny.gguf"


def test_the_key_is_never_displayed(tiny: ChatLocal, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        reply = tiny.invoke("hi")
    texts = [
        repr(tiny),
        dumps(tiny),
        repr(tiny.fingerprint),
        repr(_servers),
        repr(tiny._get_ls_params()),
        repr(reply),
    ]
    assert [text for text in (*texts, caplog.text) if _key(tiny) in text] == []
    assert "chat/completions" in caplog.text


def test_each_server_has_its_own_key(tiny: ChatLocal, tmp_path: Path) -> None:
    write_gguf(tmp_path / "other.gguf")
    other = load_local(f"gguf:{tmp_path}/other.gguf")
    assert ask_server(tiny, "/models", authorization=f"Bearer {_key(other)}").status_code == 401


async def test_a_proxy_of_the_environment_gets_neither_key_nor_prompt(
    weights: Path, tiny: ChatLocal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    model = load_local(f"gguf:{weights}", max_tokens=5, max_retries=0)
    assert model.openai_api_base == tiny.openai_api_base
    assert (model.invoke("hi").content, (await model.ainvoke("hi")).content) != ("", "")


@pytest.fixture(scope="module")
def local() -> Any:
    from code_chains.models import resolve_model

    return resolve_model("local")


@with_weights
def test_it_answers_the_first_question(local: Any, sandbox: SandboxExecutor) -> None:
    result = create_code_chain(local, executor=sandbox).invoke({"query": QUESTION})
    assert ("15" in result["output"], "15" in result["answer"]) == (True, True)


@with_weights
def test_it_answers_in_the_language_of_the_question(local: Any, sandbox: SandboxExecutor) -> None:
    query = {"query": "¿Cuál es la suma de los números del 1 al 5?"}
    answer = create_code_chain(local, executor=sandbox).invoke(query)["answer"]
    assert ("15" in answer, detect_language(answer)) == (True, "es")


@with_weights
async def test_it_streams_and_counts(local: Any, sandbox: SandboxExecutor) -> None:
    chunks = [
        chunk async for chunk in create_code_chain(local, executor=sandbox).astream({"query": QUESTION})
    ]
    assert len([chunk for chunk in chunks if chunk.get("answer")]) > 3
    assert chunks[-1]["usage"].output_tokens > 10


@with_weights
def test_it_answers_in_one_event_loop_after_another(local: Any) -> None:
    for _ in range(3):
        assert asyncio.run(local.bind(max_tokens=3).ainvoke("Say hello.")).text


@with_weights
def test_a_grammar_restricts_replies_to_one_program(local: Any) -> None:
    reply = local.for_code().invoke("Say hello.").text
    assert (reply.startswith("```python\n"), reply.count("```")) == (True, 2)


@with_weights
def test_a_truncated_reply_is_not_code(local: Any) -> None:
    short = local.bind(max_tokens=5)
    result = GenerateChain(model=short).invoke({"query": QUESTION})
    assert (result["code"], result["finish_reason"]) == ("", "length")


@with_weights
def test_one_server_serves_the_whole_process(local: Any) -> None:
    assert load_local("local", temperature=0.5).openai_api_base == local.openai_api_base


@with_weights
async def test_questions_at_once_are_all_answered(local: Any, sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(local, executor=sandbox, interpret=False)
    questions = [{"query": "What is 6 times 7?"}, {"query": "What is 20 divided by 4?"}]
    first, second = await asyncio.wait_for(chain.abatch(questions), 300)
    assert ("42" in first["output"], "5" in second["output"]) == (True, True)


@pytest.mark.rows(2)
@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_the_weights_can_wait_for_the_first_call(weights: Path, tmp_path: Path, way: str) -> None:
    pytest.importorskip("xllamacpp")
    path = Path(shutil.copy(weights, tmp_path / f"{way}.gguf"))
    model = load_local(f"gguf:{path}", max_tokens=2, start=False)
    assert _servers[path].runtime is None
    if way == "stream":
        assert list(model.stream("a"))
    elif way == "astream":
        assert [chunk async for chunk in model.astream("a")]
    else:
        assert (await model.ainvoke("a")) if way == "ainvoke" else model.invoke("a")
    assert _servers[path].runtime is not None


def test_weights_that_cannot_be_loaded_are_reported_at_the_first_call(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    model = load_local(f"gguf:{path}", start=False)
    with pytest.raises(WeightsError, match="cannot be loaded"):
        model.invoke("a")


def test_a_chain_with_a_cache_loads_no_weights_before_it_is_asked(weights: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = Path(shutil.copy(weights, tmp_path / "cached.gguf"))
    with create_code_chain(f"gguf:{path}", cache=SqliteStore(tmp_path / "answers.sqlite")):
        assert _servers[path].runtime is None
    with create_code_chain(f"gguf:{path}"):
        assert _servers[path].runtime is not None


# -- saved prompts -------------------------------------------------------------------------------------------------------


LONG: list[BaseMessage] = [
    SystemMessage("Write Python. " * 50),
    HumanMessage("1 + 1?"),
    AIMessage("2"),
    HumanMessage("2 + 2?"),
]


@pytest.fixture
def new_server(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], ChatLocal]:
    """Make a model whose server has evaluated nothing, as in a new process."""
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path / "models"))

    def make() -> ChatLocal:
        monkeypatch.setattr("code_chains.models.local._servers", {})
        return load_local(f"gguf:{weights}", max_tokens=5)

    return make


def saved(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "models/prompts").iterdir())


def test_a_new_process_evaluates_no_beginning_that_was_evaluated_before(
    new_server: Callable[[], ChatLocal], tmp_path: Path
) -> None:
    reply = new_server().invoke(LONG).text
    [state] = saved(tmp_path)
    assert (state.suffix, stat.S_IMODE(state.stat().st_mode)) == (".prompt", 0o600)
    before = state.read_bytes()
    second = new_server()
    posted: list[str] = []
    second._server.prompts._client.event_hooks["request"].append(
        lambda request: posted.append(str(request.url))
    )
    assert second.invoke(LONG).text == reply
    assert [url.rpartition("/")[2] for url in posted] == ["0?action=restore", "completions"]
    assert saved(tmp_path) == [state]
    assert state.read_bytes() == before


def test_a_state_that_is_damaged_costs_nothing_but_time(
    new_server: Callable[[], ChatLocal], tmp_path: Path
) -> None:
    reply = new_server().invoke(LONG).text
    [state] = saved(tmp_path)
    for content in (b"", b"damaged", state.read_bytes()[:1000]):
        state.write_bytes(content)
        assert new_server().invoke(LONG).text == reply


@pytest.mark.parametrize("kind", ["a file", "open to others"])
def test_a_folder_that_cannot_be_trusted_is_not_used(
    new_server: Callable[[], ChatLocal], tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "models/prompts"
    folder.parent.mkdir()
    if kind == "a file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    model = new_server()
    assert model._server.prompts.folder is None
    assert model.invoke(LONG).text
    assert kind == "a file" or saved(tmp_path) == []


def test_other_rules_and_other_weights_have_states_of_their_own(
    new_server: Callable[[], ChatLocal], weights: Path, tmp_path: Path
) -> None:
    model = new_server()
    model.invoke(LONG)
    model.invoke([SystemMessage("Write SQL. " * 60), HumanMessage("1 + 1?")])
    model.invoke([*LONG[:-1], HumanMessage("another question")])
    assert len(saved(tmp_path)) == 2
    os.utime(weights)
    new_server().invoke(LONG)
    assert len(saved(tmp_path)) == 3


def test_states_take_bounded_space(
    new_server: Callable[[], ChatLocal], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.models.prompts._MAX_FOLDER_BYTES", 1)
    new_server().invoke(LONG)
    assert saved(tmp_path) == []
