"""Errors say what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module

import pytest

from code_chains.callbacks.tracing import OpenTelemetryTracer
from code_chains.errors import ConfigurationError, MissingExtraError
from code_chains.models.local import load_local


@pytest.mark.parametrize(
    ("extra", "package", "used"),
    [
        ("cluster", "distributed", lambda: import_module("code_chains.batch.workers")),
        ("local", "xllamacpp", lambda: load_local("local")),
        ("mcp", "mcp.server", lambda: import_module("code_chains.apps.mcp.server")),
        ("otel", "opentelemetry", OpenTelemetryTracer),
        ("ui", "nicegui", lambda: import_module("code_chains.apps.page.server")),
    ],
)
def test_a_missing_extra_is_named_with_what_to_do(
    extra: str, package: str, used: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("batch.workers", "apps.mcp.server", "apps.page.server"):
        monkeypatch.delitem(sys.modules, f"code_chains.{name}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    message = (
        f"""needs the extra '{extra}'. In a clone of the repository, run: pip install -e ".[{extra}]\""""
    )
    with pytest.raises(MissingExtraError, match=re.escape(message)):
        used()


def test_an_invalid_argument_is_named_with_its_value_the_reason_and_the_remedy() -> None:
    error = ConfigurationError("iterate", True, "samples=1", because="cells build on each other")
    assert str(error) == "Invalid iterate=True: cells build on each other. Pass samples=1."
