"""Reports of runs in sandboxes of others are signed, whatever happens."""

from __future__ import annotations

from pathlib import Path

from code_chains.executors.guest.reports import MAX_REPORT_BYTES, as_line
from code_chains.executors.remote.supervised import find_report


def test_a_report_for_which_there_is_no_room_says_so(tmp_path: Path) -> None:
    report = {"stdout": "x" * MAX_REPORT_BYTES, "layers": ["landlock"], "remains": True}
    line = as_line(report, b"key", 1, str(tmp_path / "missing"))
    found = find_report(line, "key", 1)
    assert found is not None
    assert (found["layers"], found["remains"]) == (["landlock"], True)
    assert "no room" in found["broken"]
