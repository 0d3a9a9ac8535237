"""Cached answers, their keys, and concurrent equal questions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import operator
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import AddableDict, ConfigurableField
from langchain_core.stores import BaseStore, InMemoryByteStore
from langchain_core.vectorstores import InMemoryVectorStore

from code_chains import Judge, Repair, SqliteStore, create_code_chain
from code_chains.analysis.determinism import is_repeatable
from code_chains.assembly.code_chain import CodeChain
from code_chains.chains import CachedChain, StreamingTransformChain
from code_chains.chains.cached import is_cacheable
from code_chains.errors import ConfigurationError
from code_chains.executors import ProcessExecutor, SandboxExecutor
from code_chains.state import Verdict
from code_chains.storage.fingerprint import NotFingerprintableError, fingerprint
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import QUESTION, SUM_CODE

LIMIT = 100


def limited(code: str) -> bool:
    return len(code) < LIMIT


class Counted:
    """A model that counts how often it is asked for a program."""

    def __init__(self, code: str = "print(sum(range(1, 6)))", pause: float = 0.0) -> None:
        self.calls, self.code, self.pause = 0, code, pause

    @property
    def fingerprint(self) -> str:
        return self.code

    def __call__(self, messages: list[BaseMessage]) -> str:
        time.sleep(self.pause)
        if not asks_for_code(messages):
            return "It is 15."
        self.calls += 1
        return self.code


@pytest.fixture
def model() -> Counted:
    return Counted()


@pytest.fixture(scope="module")
def executor() -> Iterator[ProcessExecutor]:
    with ProcessExecutor() as executor:
        yield executor


def chain_of(model: Callable[..., str], executor: object, store: object, **options: Any) -> CodeChain:
    return create_code_chain(ScriptedModel(model), executor=executor, cache=store, **options)  # type: ignore[arg-type]


# -- hits ----------------------------------------------------------------------------------------------------------------


def test_a_hit_gives_the_same_without_a_model_or_a_run(model: Counted, executor: ProcessExecutor) -> None:
    chain = chain_of(model, executor, InMemoryByteStore())
    first, second = chain.invoke(QUESTION), chain.invoke(QUESTION)
    assert (first.pop("cached"), second.pop("cached"), model.calls) == (False, True, 1)
    assert (second.pop("usage").model_calls, first.pop("usage").model_calls) == (0, 2)
    assert first == second


async def test_each_way_of_asking_finds_what_another_kept(model: Counted, executor: ProcessExecutor) -> None:
    chain = chain_of(model, executor, InMemoryByteStore())
    list(chain.stream(QUESTION))
    chunks = [chunk async for chunk in chain.astream(QUESTION)]
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    assert total == await chain.ainvoke(QUESTION) == chain.invoke(QUESTION)
    assert model.calls == 1


@pytest.mark.slow
def test_another_process_finds_it_in_the_file(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom code_chains import create_code_chain\nfrom code_chains.testing import ScriptedModel\n"
        "model = ScriptedModel(lambda messages: 'print(15)')\n"
        "chain = create_code_chain(model, cache=sys.argv[1], interpret=False)\n"
        "print(chain.invoke('What is 15?')['cached'])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "answers.sqlite")]
    told = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)
    ]
    assert told == ["False", "True"]


def test_an_answer_with_a_figure_comes_back_whole(executor: ProcessExecutor) -> None:
    chain = chain_of(
        Counted("open('a.png', 'wb').write(b'\\x89PNG')\nprint(1)"), executor, InMemoryByteStore()
    )
    first, second = chain.invoke(QUESTION), chain.invoke(QUESTION)
    assert second["cached"]
    assert second["execution"] == first["execution"]


def test_spaces_around_a_question_make_no_difference(model: Counted, executor: ProcessExecutor) -> None:
    chain = chain_of(model, executor, InMemoryByteStore())
    chain.invoke("Wie groß ist der Umfang von é?")
    assert chain.invoke("  Wie groß ist der Umfang von e\N{COMBINING ACUTE ACCENT}?\r\n")["cached"]


def test_a_redis_server_will_do(
    model: Counted, executor: ProcessExecutor, redis_store: BaseStore[str, bytes]
) -> None:
    chain = chain_of(model, executor, redis_store)
    assert [chain.invoke(QUESTION)["cached"] for _ in range(2)] == [False, True]


# -- what is another question --------------------------------------------------------------------------------------------


@pytest.mark.rows(3)
@pytest.mark.parametrize(
    "other",
    [
        {"query": QUESTION.lower()},
        {"variables": {"n": 2}},
        {"variables": {"n": 1.0}},
        {"language": "es"},
        {"history": [HumanMessage("Before.")]},
        {"context": "Help."},
        {"tests": "assert f()"},
    ],
)
def test_what_may_change_the_answer_is_another_question(
    executor: ProcessExecutor, other: dict[str, Any]
) -> None:
    chain = chain_of(Counted(), executor, InMemoryByteStore(), interpret=False)
    asked = {"query": QUESTION, "variables": {"n": 1}}
    chain.invoke(asked)
    assert not chain.invoke({**asked, **other})["cached"]


@pytest.mark.slow
def test_a_file_counts_by_its_content(model: Counted, executor: ProcessExecutor, tmp_path: Path) -> None:
    chain, file = chain_of(model, executor, InMemoryByteStore()), tmp_path / "a.csv"
    found = []
    for content, path in (("a,b", file), ("a,b", tmp_path / "moved.csv"), ("a,c", file)):
        path.write_text(content)
        found.append(chain.invoke({"query": QUESTION, "files": {"a.csv": path}})["cached"])
    assert found == [False, True, False]


@pytest.mark.rows(3)
@pytest.mark.parametrize(
    "options",
    [
        {"checks": "strict"},
        {"solve": Repair(1)},
        {"solve": Repair(samples=2)},
        {"verify": [Judge()]},
        {"language": "es"},
        {"interpret": False},
        {"limits": None, "executor": "sandbox"},
    ],
)
def test_another_chain_has_answers_of_its_own(executor: ProcessExecutor, options: dict[str, Any]) -> None:
    store, model = InMemoryByteStore(), Counted()
    chain_of(model, executor, store).invoke(QUESTION)
    with create_code_chain(
        ScriptedModel(model), **{"executor": executor, "cache": store, **options}
    ) as other:
        assert not other.invoke(QUESTION)["cached"]


def test_other_snippets_make_another_question(model: Counted, executor: ProcessExecutor) -> None:
    from code_chains import SnippetStore

    snippets = SnippetStore.from_texts(["print(1)"], DeterministicFakeEmbedding(size=8))
    chain = chain_of(model, executor, InMemoryByteStore(), snippets=snippets)
    chain.invoke(QUESTION)
    snippets.add_texts(["print(2)"])
    assert not chain.invoke(QUESTION)["cached"]


def test_keys_of_a_model_are_no_part_of_it() -> None:
    from langchain_openai import ChatOpenAI

    one, two, other = (
        ChatOpenAI(model=name, api_key=key, temperature=warm_up)
        for name, key, warm_up in (("a", "sk-1", 0), ("a", "sk-2", 0), ("a", "sk-1", 1))
    )
    assert fingerprint(one) == fingerprint(two) != fingerprint(other)


def test_functions_count_by_what_they_do() -> None:
    def of(n: int) -> Callable[[], int]:
        return lambda: n

    assert fingerprint(of(1)) == fingerprint(of(1)) != fingerprint(of(2))


def test_arrays_and_frames_count_by_their_content() -> None:
    assert fingerprint(np.arange(3)) == fingerprint(np.arange(3)) != fingerprint(np.arange(3.0))
    frame = pd.DataFrame({"a": [1, 2]})
    assert fingerprint(frame) == fingerprint(frame.copy()) != fingerprint(frame.rename(columns={"a": "b"}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.slow
@given(json_values, json_values)
def test_different_values_have_different_fingerprints(one: object, two: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (fingerprint(one) == fingerprint(two)) == same


def test_what_has_no_fingerprint_is_refused_without_a_version(model: Counted) -> None:
    class Odd:
        __slots__ = ()

    with pytest.raises(NotFingerprintableError):
        fingerprint(Odd())
    held = Odd()
    odd = StreamingTransformChain(
        input_variables=["query"], output_variables=["answer"], transform=lambda _: {"answer": f"{held}"[:0]}
    )
    with pytest.raises(ConfigurationError, match="version"):
        CachedChain(odd, store=InMemoryByteStore(), should_cache=lambda outputs: True)
    chain = CachedChain(odd, store=InMemoryByteStore(), version="1", should_cache=lambda outputs: True)
    assert chain.invoke("a")["answer"] == ""


def test_what_is_configured_counts(executor: ProcessExecutor) -> None:
    one, two = ScriptedModel(lambda messages: "print(1)"), ScriptedModel(lambda messages: "print(2)")
    model = one.configurable_alternatives(ConfigurableField(id="which"), default_key="one", two=two)
    chain = create_code_chain(model, executor=executor, cache=InMemoryByteStore(), interpret=False)
    told = [
        chain.invoke(QUESTION, {"configurable": {"which": which}})["output"]
        for which in ("one", "two", "one")
    ]
    assert told == ["1", "2", "1"]


def test_an_object_counts_by_its_hidden_attributes_and_the_code_of_its_class() -> None:
    def made(source: str) -> Any:
        names: dict[str, Any] = {"__name__": "tests.chains.test_cached"}
        exec(source, names)
        return names["Check"]

    plain = "class Check:\n    def __init__(self, word): self._word = word\n    def __call__(self, code): return {}"
    check, other = made(plain.format("[]")), made(plain.format("[1]"))
    assert fingerprint(check("os")) == fingerprint(check("os")) != fingerprint(check("print"))
    assert fingerprint(check("os")) != fingerprint(other("os"))


def test_a_function_counts_with_the_globals_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(limited)
    monkeypatch.setitem(globals(), "LIMIT", 3)
    assert fingerprint(limited) != before


class Counting:
    calls = 0
    fingerprint = "always the same program"

    def __call__(self, messages: list[Any]) -> str:
        self.calls += 1
        return f"```python\n{SUM_CODE}\n```" if asks_for_code(messages) else f"Told {self.calls}."


def test_what_counts_its_calls_has_a_fingerprint_of_its_own(executor: ProcessExecutor) -> None:
    with create_code_chain(ScriptedModel(Counting()), executor=executor, cache=InMemoryByteStore()) as chain:
        assert [chain.invoke(QUESTION)["cached"] for _ in range(3)] == [False, True, True]


def test_models_that_are_configured_later_are_told_apart() -> None:
    from langchain.chat_models import init_chat_model

    one, two = (init_chat_model(name, configurable_fields="any") for name in ("openai:a", "openai:b"))
    assert fingerprint(one) != fingerprint(two)


def test_callbacks_of_a_bound_model_do_not_count(model: Counted) -> None:
    base = ScriptedModel(model)
    bound = [base.with_config(callbacks=[UsageMetadataCallbackHandler()]) for _ in range(2)]
    assert fingerprint(bound[0]) == fingerprint(bound[1])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (pd.DataFrame({"a": [1, 2]}, dtype=object), pd.DataFrame({"a": ["1", "2"]}, dtype=object)),
        (pd.DataFrame({1: [1]}), pd.DataFrame({"1": [1]})),
        (
            pd.DataFrame({"a": pd.Categorical(["lo"], ["lo", "hi"], ordered=True)}),
            pd.DataFrame({"a": pd.Categorical(["lo"], ["hi", "lo"], ordered=True)}),
        ),
        (pd.DataFrame({"a": [1]}).rename_axis("x"), pd.DataFrame({"a": [1]}).rename_axis("y")),
        (pd.DataFrame({"a": [[1], [2]]}), pd.DataFrame({"a": [[1], [3]]})),
    ],
)
def test_frames_that_differ_are_told_apart(one: pd.DataFrame, two: pd.DataFrame) -> None:
    assert fingerprint(one) == fingerprint(one.copy()) != fingerprint(two)


@pytest.mark.slow
def test_a_function_counts_the_same_in_each_process() -> None:
    program = (
        "from code_chains.storage.fingerprint import fingerprint\n"
        "def check(code): return code in {'alpha', 'beta', 'gamma', 'delta'}\nprint(fingerprint(check))"
    )
    told = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        for _ in range(3)
    }
    assert len(told) == 1


def test_a_store_without_a_fingerprint_needs_a_version(model: Counted, executor: ProcessExecutor) -> None:
    other = InMemoryVectorStore.from_texts(["print(1)"], DeterministicFakeEmbedding(size=8))
    with pytest.raises(ConfigurationError, match="version"):
        chain_of(model, executor, InMemoryByteStore(), snippets=other)


def test_a_chain_without_a_verdict_needs_its_own_rule() -> None:
    shout = StreamingTransformChain(
        input_variables=["query"], output_variables=["loud"], transform=lambda s: {"loud": s["query"] + "!"}
    )
    with pytest.raises(ConfigurationError, match="should_cache"):
        CachedChain(shout, store=InMemoryByteStore())
    chain = CachedChain(shout, store=InMemoryByteStore(), should_cache=lambda outputs: True)
    assert [chain.invoke("a")["cached"] for _ in range(2)] == [False, True]


# -- what is not cached --------------------------------------------------------------------------------------------------


@pytest.mark.rows(3)
@pytest.mark.parametrize(
    "code",
    [
        "raise ValueError(1)",
        "import random\nprint(random.random())",
        "from datetime import date\nprint(date.today())",
        "import time\nprint(time.time())",
        "import uuid\nprint(uuid.uuid4())",
        "import numpy as np\nprint(np.random.rand())",
        "import numpy as np\nprint(np.random.default_rng().normal())",
        "import random\nrandom.seed()\nprint(random.random())",
    ],
)
def test_nondeterministic_programs_are_not_cached(executor: ProcessExecutor, code: str) -> None:
    store = InMemoryByteStore()
    chain_of(Counted(code), executor, store, solve=Repair(1), interpret=False).invoke(QUESTION)
    assert list(store.yield_keys()) == []


@pytest.mark.parametrize(
    "code",
    [
        "print(2 + 2)",
        "import pandas as pd\nprint(pd.read_csv('sales.csv').groupby('region')['amount'].sum())",
        "import pandas as pd\npd.read_csv('a.csv').plot().figure.savefig('a.png')",
        "import orchard_billing\nprint(orchard_billing.fee(3))",
        "from datetime import date, datetime\nprint(date(2024, 1, 1), datetime(2024, 1, 1))",
        "SELECT sum(amount) FROM sales",
        "words = set('a b'.split())\nprint(len(words), 'a' in words, sorted(words), max(set('ab')))",
        "print({1, 2, 3})",
        "print(sorted(set('ab'), reverse=True), sum({one for one in [2, 2]}))",
        "seen = set()\nfor one in 'aba':\n    if one not in seen:\n        seen.add(one)\n        print(one)",
        "one = set('ab')\ntwo = set('bc')\nprint(sorted(one & two), one <= two)",
        "rest = set(range(9))\nfor n in range(2, 9):\n    rest -= set(range(n * n, 9, n))\nprint(sorted(rest))",
        "sample = id = 3\nprint(sample + id)",
        "found = list(set('ab'))\nfound.sort()\nprint(found)",
        "nothing = object()\nprint(nothing is None)",
        "print('It is now random today.')",
        "import sqlite3\nprint(sqlite3.connect(':memory:').execute('SELECT max(age) FROM people').fetchall())",
    ],
)
def test_deterministic_programs_are_repeatable(code: str) -> None:
    assert is_repeatable(code)


@pytest.mark.parametrize(
    "code",
    [
        "SELECT now()",
        "SELECT * FROM t USING SAMPLE 3",
        "SELECT * FROM read_csv('https://example.org/a.csv')",
        "SELECT age(born) FROM people",
        "SELECT datetime('now')",
        "SELECT random()",
        "SELECT date()",
        "import requests\nprint(1)",
        "import numpy as np\nprint(np.datetime64('now'))",
        "import numpy as np\nprint(np.datetime64('today', 'D'))",
        "import pandas as pd\nprint(pd.Timestamp('now'))",
        "import pandas as pd\nprint(pd.to_datetime('today'))",
        "import os\nprint(os.path.getmtime('a.csv'))",
        "import os\nprint(os.stat('a.csv'))",
        "from pathlib import Path\nprint(Path('a.csv').stat().st_mtime)",
        "from email.utils import localtime\nprint(localtime())",
        "import sqlite3\nprint(sqlite3.connect(':memory:').execute(\"SELECT datetime('now')\").fetchall())",
        "import duckdb\nn = 3\nprint(duckdb.sql(f'SELECT {n}, random()'))",
        "import os\nprint(os.popen('date').read())",
        "import os\nos.system('date')",
        "import subprocess\nprint(subprocess.run('date', capture_output=True).stdout)",
        "import os\nprint(os.getrandom(3))",
        "print(open('/dev/urandom', 'rb').read(3))",
        "import timeit\nprint(timeit.timeit('1'))",
        "import random\nrandom.seed(7)\nprint(random.SystemRandom().random())",
        "from sklearn.cluster import KMeans\nprint(KMeans(2).fit([[1], [2]]).labels_)",
        "from sklearn.model_selection import train_test_split as split\nprint(split([1, 2, 3]))",
        "from scipy.stats import norm\nprint(norm.rvs(size=2))",
        "import torch\nprint(torch.rand(2))",
        "import tensorflow as tf\nprint(tf.random.normal([2]))",
        "from faker import Faker\nprint(Faker().name())",
        "import pandas as pd\nprint(pd.read_csv('https://example.org/a.csv'))",
        "import pandas as pd\nfor one in ['s3://a/b.csv']:\n    print(pd.read_csv(one))",
        "print(set('ab'))",
        "print({'a', 'b'})",
        "words = {one for one in 'ab'}\nprint(f'{words}')",
        "words = set()\nwords.add('a')\nprint(words | {'b'})",
        "print(', '.join(set('ab')))",
        "print(list(set('ab')))",
        "for word in set('ab'):\n    print(word)",
        "print({word: 1 for word in set('ab')})",
        "def parts(text):\n    return set(text)\nprint(parts('ab'))",
        "print(object())",
        "print(hash('a'))",
        "words = ['a', 'b']\nprint(max(set(words), key=words.count))",
        "print(list(set('ab'))[0])",
        "first, *rest = set('ab')\nprint(first)",
        "a = set('ab')\nb = a\nc = b\nd = c\nprint(d)",
        "found = []\nfound += set('ab')\nprint(found)",
        "class Words:\n    known = set('ab')\nprint(Words.known)",
        "class Words:\n    def all(self):\n        return set('ab')\nprint(Words().all())",
        "from collections import defaultdict\nfound = defaultdict(set)\nfound[1].add('a')\nprint(found)",
        "print({'a': 1, 'b': 2}.keys() & {'a', 'b'})",
        "print({'a': 1, 'b': 2}.keys() - {'a': 1}.keys())",
        "import numpy as np\nprint(np.empty(3))",
        "import os\nprint(os.listdir())",
        "from pathlib import Path\nprint(*Path('.').glob('*.csv'))",
        "import networkx as nx\nprint(list(nx.connected_components(nx.path_graph('ab'))))",
        "import duckdb\nprint(duckdb.sql('SELECT region FROM sales GROUP BY region'))",
        "print(eval('__import__(\"time\").time()'))",
        "import random\nrandom.seed(7)\nprint(random.random())",
        "import random\nlots = random.Random(7)\nprint(lots.sample(range(9), 2))",
        "import numpy as np\nlots = np.random.default_rng(7)\nprint(lots.normal())",
        "import pandas as pd\nprint(pd.DataFrame({'a': [1, 2]}).sample(random_state=7))",
        "from sklearn.linear_model import LinearRegression\nprint(LinearRegression().fit([[1], [2]], [1, 2]).coef_)",
        f"print({' | '.join('a' * 1500)})",
    ],
)
def test_doubtful_programs_are_not_repeatable(code: str) -> None:
    assert not is_repeatable(code)


def test_a_seed_of_the_executor_makes_randomness_repeatable() -> None:
    with SandboxExecutor(seed=3, preload=()) as executor:
        chain = chain_of(Counted("import random\nprint(random.random())"), executor, InMemoryByteStore())
        chain.invoke(QUESTION)
        assert chain.invoke(QUESTION)["cached"]


def test_an_incomplete_answer_is_not_cached() -> None:
    outputs = {"verdict": Verdict("unverified", "none", ""), "code": "print(1)", "stop_reason": "answered"}
    assert is_cacheable(outputs)
    assert not is_cacheable({**outputs, "answer_complete": False})
    assert not is_cacheable({**outputs, "stop_reason": "tokens"})


@pytest.fixture
def told() -> Iterator[tuple[CodeChain, ProcessExecutor]]:
    """A chain with a cache whose programs are the last lines of questions."""
    model = ScriptedModel(lambda messages: str(messages[-1].text).splitlines()[-1])
    with (
        ProcessExecutor(preload=()) as executor,
        create_code_chain(model, executor=executor, cache=InMemoryByteStore(), interpret=False) as chain,
    ):
        yield chain, executor


def ask(chain: CodeChain, session_id: str | None, *programs: str, **inputs: Any) -> list[tuple[str, bool]]:
    """Return what the programs show in a session, and whether that was cached."""
    states = [{"query": code, "session_id": session_id, **inputs} for code in programs]
    return [(result["output"], result["cached"]) for result in map(chain.invoke, states)]


def test_the_same_question_is_paid_once_for_all_sessions(told: Any) -> None:
    found = [ask(told[0], name, "x = 5; print(x)") for name in ("ann", "bob", None)]
    assert found == [[("5", False)], [("5", True)], [("5", True)]]


def test_a_hit_leaves_the_session_as_the_program_does(told: Any) -> None:
    programs = ["x = 5; print(x)", "x += 1; print(x)"]
    ask(told[0], "ann", *programs)
    assert ask(told[0], "bob", *programs, "print(x * 10)") == [("5", True), ("6", True), ("60", False)]


def test_a_hit_can_be_undone_and_rebuilt(told: Any) -> None:
    chain, executor = told
    programs = ["x = 5; print(x)", "x += 1; print(x)"]
    ask(chain, "ann", *programs)
    ask(chain, "bob", *programs)
    chain.undo("bob")
    for session in list(executor._sessions):
        session.close()
    assert ask(chain, "bob", "print(x)") == [("5", False)]


@pytest.mark.parametrize(
    ("first", "second"),
    [("x = 5; print(1)", "x = 6; print(1)"), ("print(1); x = 5", "x = 5; print(1)")],
)
def test_another_history_is_another_question(told: Any, first: str, second: str) -> None:
    ask(told[0], "ann", first, "print('x' in dir())")
    assert ask(told[0], "bob", second, "print('x' in dir())")[1][1] is False


def test_nothing_is_cached_after_a_program_that_may_do_something_else(told: Any) -> None:
    programs = ["import random; x = random.random(); print(1)", "print(2)"]
    ask(told[0], "ann", *programs)
    assert [cached for _, cached in ask(told[0], "bob", *programs)] == [False, False]


def test_files_of_earlier_turns_are_part_of_the_question(told: Any) -> None:
    for name, data, cached in (("ann", b"a", False), ("bob", b"a", True), ("eve", b"b", False)):
        ask(told[0], name, "print(1)", files={"a.txt": data})
        assert ask(told[0], name, "print(open('a.txt').read())") == [(data.decode(), cached)]


def test_nothing_is_cached_in_a_session_of_the_caller(told: Any) -> None:
    chain, executor = told
    ask(chain, None, "print(5)")
    with executor.session() as session:
        assert ask(chain, None, "print(5)", session=session) == [("5", False)]


def test_an_expired_answer_is_a_miss(model: Counted, executor: ProcessExecutor) -> None:
    inner = create_code_chain(ScriptedModel(model), executor=executor)
    cached = CachedChain(inner, store=InMemoryByteStore(), ttl=0.05)
    cached.invoke(QUESTION)
    time.sleep(0.06)
    assert not cached.invoke(QUESTION)["cached"]


# -- failures of the store -----------------------------------------------------------------------------------------------


class Broken(InMemoryByteStore):
    """A store that fails at everything."""

    def mget(self, keys: Any) -> Any:
        raise OSError("the disk is gone")

    def mset(self, key_value_pairs: Any) -> None:
        raise OSError("the disk is gone")


def test_a_broken_store_is_a_miss_and_a_line_in_the_log(
    model: Counted, executor: ProcessExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    result = chain_of(model, executor, Broken()).invoke(QUESTION)
    assert (result["cached"], result["answer"]) == (False, "It is 15.")
    assert "the disk is gone" in caplog.text


@pytest.mark.rows(2)
@pytest.mark.parametrize("damage", [b"", b"\xff", b"[]", b'{"made": 0, "outputs": {"verdict": 7}}'])
def test_a_damaged_entry_is_a_miss(model: Counted, executor: ProcessExecutor, damage: bytes) -> None:
    store = InMemoryByteStore()
    chain = chain_of(model, executor, store)
    chain.invoke(QUESTION)
    store.mset([(key, damage) for key in list(store.yield_keys())])
    assert not chain.invoke(QUESTION)["cached"]


def test_an_entry_in_which_one_byte_was_changed_or_that_is_anothers_is_a_miss(
    model: Counted, executor: ProcessExecutor
) -> None:
    store = InMemoryByteStore()
    chain = chain_of(model, executor, store)
    chain.invoke(QUESTION)
    ((key, entry),) = store.store.items()
    for place in range(0, len(entry), len(entry) // 20):
        store.mset([(key, entry[:place] + bytes([entry[place] ^ 1]) + entry[place + 1 :])])
        assert not chain.invoke(QUESTION)["cached"]
    chain.invoke("What is 2 + 2?")
    (other,) = store.store.keys() - {key}
    store.mset([(other, entry)])
    assert not chain.invoke("What is 2 + 2?")["cached"]


def test_a_locked_file_is_a_miss(model: Counted, executor: ProcessExecutor, tmp_path: Path) -> None:
    import sqlite3

    store = SqliteStore(tmp_path / "answers.sqlite", timeout=0.05)
    chain = chain_of(model, executor, store)
    other = sqlite3.connect(tmp_path / "answers.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    result = chain.invoke(QUESTION)
    other.close()
    assert (result["cached"], result["answer"]) == (False, "It is 15.")


# -- single flight -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_fifty_threads_ask_the_model_once(executor: ProcessExecutor, tmp_path: Path, kind: str) -> None:
    model = Counted(pause=0.3)
    store = InMemoryByteStore() if kind == "memory" else SqliteStore(tmp_path / "answers.sqlite")
    chain = chain_of(model, executor, store)
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(chain.invoke(QUESTION)["answer"])) for _ in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (model.calls, answers) == (1, ["It is 15."] * 50)


async def test_fifty_tasks_ask_the_model_once(executor: ProcessExecutor) -> None:
    model = Counted(pause=0.3)
    chain = chain_of(model, executor, InMemoryByteStore())
    answers = await asyncio.gather(*(chain.ainvoke(QUESTION) for _ in range(50)))
    assert (model.calls, {one["answer"] for one in answers}) == (1, {"It is 15."})


@pytest.mark.slow
def test_waiters_for_a_failure_compute_concurrently(executor: ProcessExecutor) -> None:
    model = Counted("raise ValueError(1)", pause=1)
    chain = chain_of(model, executor, InMemoryByteStore(), solve=Repair(1))
    began = time.monotonic()
    results = chain.batch([{"query": QUESTION}] * 8, {"max_concurrency": 8})
    assert (model.calls, time.monotonic() - began < 6) == (8, True)
    assert {one["verdict"].status for one in results} == {"failed"}


def test_reading_two_streams_of_one_question_is_no_deadlock(
    model: Counted, executor: ProcessExecutor
) -> None:
    chain = chain_of(model, executor, InMemoryByteStore())
    chunks = zip(
        *zip_longest(chain.stream(QUESTION), chain.stream(QUESTION), fillvalue=AddableDict()), strict=True
    )
    # Output may come in more parts in one.
    first, second = (reduce(operator.add, of_stream) for of_stream in chunks)
    assert (first["answer"], first.keys()) == (second["answer"], second.keys())


async def test_asking_again_halfway_waits_no_longer_than_the_timeout(
    model: Counted, executor: ProcessExecutor
) -> None:
    inner = create_code_chain(ScriptedModel(model), executor=executor)
    chain = CachedChain(inner, store=InMemoryByteStore(), timeout=0.2)
    async with asyncio.timeout(30):
        async for _ in chain.astream(QUESTION):
            assert (await chain.ainvoke(QUESTION))["answer"] == "It is 15."
            break


def test_waiting_for_a_stream_that_is_never_read_ends(model: Counted, executor: ProcessExecutor) -> None:
    chain = CachedChain(
        create_code_chain(ScriptedModel(model), executor=executor), store=InMemoryByteStore(), timeout=0.2
    )
    stream = chain.stream(QUESTION)
    next(stream)
    with ThreadPoolExecutor() as pool:
        assert pool.submit(chain.invoke, QUESTION).result(timeout=20)["answer"] == "It is 15."


def test_waiters_get_copies_of_an_answer(executor: ProcessExecutor) -> None:
    chain = chain_of(Counted(pause=0.3), executor, InMemoryByteStore())
    with ThreadPoolExecutor() as pool:
        one, two = pool.map(chain.invoke, [QUESTION, QUESTION])
    one["attempts"].clear()
    assert len(two["attempts"]) == 1


def test_an_interrupt_while_joining_leaves_the_question_to_others(
    model: Counted, executor: ProcessExecutor
) -> None:
    class Interrupted(InMemoryByteStore):
        count = 0

        def mget(self, keys: Any) -> Any:
            self.count += 1
            if self.count == 2:
                raise KeyboardInterrupt
            return super().mget(keys)

    chain = chain_of(model, executor, Interrupted())
    with pytest.raises(KeyboardInterrupt):
        chain.invoke(QUESTION)
    assert chain.invoke(QUESTION)["answer"] == "It is 15."


def test_after_an_error_the_next_caller_computes(executor: ProcessExecutor) -> None:
    def failing(messages: list[BaseMessage]) -> str:
        if not tried:
            tried.append(1)
            raise ConnectionError("once")
        return "print(15)"

    tried: list[int] = []
    chain = chain_of(failing, executor, InMemoryByteStore(), interpret=False)
    with pytest.raises(ConnectionError):
        chain.invoke(QUESTION)
    assert chain.invoke(QUESTION)["output"] == "15"


async def test_a_cancelled_caller_leaves_the_question_to_others(executor: ProcessExecutor) -> None:
    model = Counted(pause=0.2)
    chain = chain_of(model, executor, InMemoryByteStore())
    for pause in (0.0, 0.001, 0.005, 0.05, 0.1):
        asking = asyncio.create_task(chain.ainvoke(QUESTION))
        await asyncio.sleep(pause)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
    assert (await asyncio.wait_for(chain.ainvoke(QUESTION), 10))["answer"] == "It is 15."
