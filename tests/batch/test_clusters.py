"""The clusters of Dask that a run may use: one that adapts, one behind TLS, and addresses from its own configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_chains.batch.runner import map_questions
from code_chains.errors import ExecutorError
from tests.batch.test_runner import FACTORY, are_correct, questions_up_to

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "threads_per_worker": 2}


def test_a_cluster_that_adapts_starts_its_workers_for_the_questions() -> None:
    with distributed.LocalCluster(n_workers=0, **LOCAL) as cluster:
        cluster.adapt(minimum=0, maximum=2)
        answers = list(map_questions(FACTORY, questions_up_to(8), cluster=cluster))
    assert are_correct(answers)


@pytest.fixture
def certificates(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Dask's own settings for TLS, with a certificate for this test."""
    pytest.importorskip("cryptography")
    security = distributed.security.Security.temporary()
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.write_text(security.tls_ca_file)
    key.write_text(security.tls_client_key)
    settings: dict[str, Any] = {"distributed.comm.tls.ca-file": str(certificate)}
    for role in ("client", "scheduler", "worker"):
        settings |= {
            f"distributed.comm.tls.{role}.cert": str(certificate),
            f"distributed.comm.tls.{role}.key": str(key),
        }
    settings["distributed.comm.require-encryption"] = True
    with dask.config.set(settings):
        yield settings


def test_an_address_with_tls_takes_its_certificates_from_the_configuration_of_dask(
    certificates: dict[str, Any],
) -> None:
    security = distributed.security.Security()
    with distributed.LocalCluster(n_workers=1, security=security, **LOCAL) as cluster:
        assert cluster.scheduler_address.startswith("tls://")
        answers = list(map_questions(FACTORY, questions_up_to(4), cluster=cluster.scheduler_address))
        none = {"distributed.comm.tls.ca-file": None, "distributed.comm.tls.client.cert": None}
        with dask.config.set(none), pytest.raises(ExecutorError, match=r"distributed\.comm\.tls"):
            list(map_questions(FACTORY, questions_up_to(4), cluster=cluster.scheduler_address))
    assert are_correct(answers)
