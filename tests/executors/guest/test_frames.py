"""What a program's process reports is split into frames, whatever it holds."""

from __future__ import annotations

import json

import pytest

from code_chains.executors.guest.frames import FrameReader
from code_chains.executors.guest.wire import FRAME_HEADER


@pytest.mark.parametrize("result", [5, True, "text", ["a"], {"a": 1}, None])
def test_a_result_without_data_is_none(result: object) -> None:
    text = json.dumps({"status": "ok", "result": result, "sizes": []}).encode()
    frames = FrameReader(1000).feed(FRAME_HEADER.pack(len(text)) + text)
    assert frames == [{"status": "ok", "result": None, "views": []}]
