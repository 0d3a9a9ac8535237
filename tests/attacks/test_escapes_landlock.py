"""The escape techniques of `test_escapes`, tried against Landlock and the system-call filter alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.attacks.test_escapes import (
    LANDLOCK_ENVIRONMENTS,
    Environment,
    Host,
    Judge,
    attack_from,
    executors,
    rows,
)

__all__ = ["executors"]


@pytest.mark.attack
@pytest.mark.parametrize(("environment", "program", "judge"), rows(LANDLOCK_ENVIRONMENTS))
def test_no_known_technique_escapes_landlock_alone(
    executors: Callable[[Environment], Any],
    host: Host,
    environment: Environment,
    program: str,
    judge: Judge,
) -> None:
    attack_from(executors(environment), host, environment, program, judge)
