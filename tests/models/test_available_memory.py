"""How much memory is available, read from folders that look like /proc and /sys."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.models.choice import available_memory

MEMINFO = {"proc/meminfo": "MemTotal:       8000 kB\nMemFree:        100 kB\nMemAvailable:   5000 kB\n"}
UNLIMITED = "9223372036854771712\n"


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def group(folder: str, maximum: str, current: int, inactive: int = 0) -> dict[str, str]:
    """Files of a control group of version 2."""
    return {
        f"sys/fs/cgroup/{folder}/memory.max": f"{maximum}\n",
        f"sys/fs/cgroup/{folder}/memory.current": f"{current}\n",
        f"sys/fs/cgroup/{folder}/memory.stat": f"anon 1\ninactive_file {inactive}\nactive_file 7\n",
    }


def legacy(folder: str, limit: str, usage: int, inactive: int = 0) -> dict[str, str]:
    """Files of a control group of version 1."""
    return {
        f"sys/fs/cgroup/memory/{folder}/memory.limit_in_bytes": limit,
        f"sys/fs/cgroup/memory/{folder}/memory.usage_in_bytes": f"{usage}\n",
        f"sys/fs/cgroup/memory/{folder}/memory.stat": f"inactive_file 1\ntotal_inactive_file {inactive}\n",
    }


V2 = {"proc/self/cgroup": "0::/app/job\n"}
V1 = {"proc/self/cgroup": "9:cpuset:/x\n4:cpu,memory:/app/job\n0::/\n"}
CASES: dict[str, tuple[dict[str, str], int]] = {
    "a machine without control groups": ({}, 5_120_000),
    "version 2, without a limit": (V2 | group("app/job", "max", 10), 5_120_000),
    "version 2, caches are given back": (V2 | group("app/job", "3000000", 1_000_000, 400_000), 2_400_000),
    "version 2, a limit above the group": (V2 | group("app", "900", 100) | group("app/job", "max", 100), 800),
    "version 2, a container's own group is the topmost": (V2 | group("", "700", 100), 600),
    "version 2, more than the machine has": (V2 | group("app/job", "99000000", 1), 5_120_000),
    "version 2, more is used than allowed": (V2 | group("app/job", "500", 900), 0),
    "version 1": (V1 | legacy("app/job", "3000000\n", 1_000_000, 500_000), 2_500_000),
    "version 1, without a limit": (V1 | legacy("app/job", UNLIMITED, 10), 5_120_000),
    "version 1, a container's own group is the topmost": (V1 | legacy("", "700\n", 100), 600),
    "a group outside of what is mounted": (
        {"proc/self/cgroup": "0::/../../app\n"} | group("app", "800", 0),
        800,
    ),
}


@pytest.mark.parametrize(("files", "available"), CASES.values(), ids=CASES)
def test_the_tightest_limit_counts(files: dict[str, str], available: int, tmp_path: Path) -> None:
    assert available_memory(write(tmp_path, {**MEMINFO, **files})) == available


def test_a_system_without_proc_tells_its_free_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert available_memory(tmp_path) == 40_960


def test_what_no_system_tells_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert available_memory(tmp_path) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems may not tell")
def test_this_machine_tells_it() -> None:
    assert (available_memory() or 0) > 0


NUMBERS = st.sampled_from(["max", "0", "-1", "٣", "1" * 400, UNLIMITED, ""]).map(str.encode)
CONTENT = st.binary(max_size=60) | NUMBERS
LINES = st.sampled_from(
    ["0::/", "0::/a/b", "4:memory:/a", "0::/\0", "0::" + "/x" * 999, "0::/" + "y" * 999, "::::"]
)


@given(
    st.lists(LINES).map("\n".join).map(str.encode) | CONTENT,
    CONTENT,
    st.lists(CONTENT, min_size=6, max_size=6),
)
def test_whatever_the_files_contain_nothing_is_raised(
    groups: bytes, info: bytes, contents: list[bytes]
) -> None:
    names = [
        f"sys/fs/cgroup/{name}"
        for name in (
            "memory.max",
            "memory.current",
            "memory.stat",
            "a/memory.max",
            "memory/memory.limit_in_bytes",
        )
    ]
    files = {"proc/self/cgroup": groups, "proc/meminfo": b"MemAvailable: 5 kB\n" + info}
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder), {**files, **dict(zip(names, contents, strict=False))})
        assert 0 <= (available_memory(root) or 0) <= 5120
