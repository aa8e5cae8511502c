"""What measures attacks: a client that survives its server, attackers that leave nothing behind, and memory's peak."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from support.models import add_model
from support.processes import is_gone
from support.server import ServerProcess
from support.steady_client import WIRES, Sample, SteadyClient
from support.under_attack.attackers import Attackers
from support.under_attack.attacks import ATTACKS
from support.under_attack.memory import MemoryGrowth
from support.under_attack.target import Target
from support.waiting import until

PACE_PER_S = 200.0


@pytest.fixture
def server(repository: Path, serve: Callable[..., ServerProcess]) -> ServerProcess:
    add_model(repository, "double")
    return serve(repository)


def test_requests_are_due_at_the_pace_whenever_they_are_answered(server: ServerProcess) -> None:
    with SteadyClient(server.http, server.grpc, PACE_PER_S) as client:
        samples = client.samples(at_least=50)
    for wire in WIRES:
        due_s = [sample.due_s for sample in samples if sample.wire == wire]
        assert [later - sooner for sooner, later in pairwise(due_s)] == pytest.approx(
            [1 / PACE_PER_S] * (len(due_s) - 1)
        )


def test_a_forgiving_client_goes_on_without_its_server(server: ServerProcess) -> None:
    with SteadyClient(server.http, server.grpc, PACE_PER_S, forgiving=True) as client:
        assert not any(sample.failure for sample in client.samples(at_least=50))
        server.kill()
        after: list[Sample] = []
        until(lambda: after.extend(client.samples(at_least=1)) or _failed(after) == set(WIRES))


def _failed(samples: list[Sample]) -> set[str]:
    return {sample.wire for sample in samples if sample.failure}


def test_a_client_that_is_not_forgiving_does_not(server: ServerProcess) -> None:
    client = SteadyClient(server.http, server.grpc)
    with pytest.raises(AssertionError, match="the steady client got a wrong answer"), client:
        client.samples(at_least=50)
        server.kill()
        until(lambda: not client.samples(at_least=1))


def test_attackers_leave_nothing_behind(server: ServerProcess) -> None:
    process = psutil.Process(server.process.pid)
    before = len(process.net_connections())
    with Attackers(ATTACKS["begun"], Target(server.http, server.grpc, server.process.pid)) as attackers:
        until(lambda: len(process.net_connections()) > before + 1000)
    assert is_gone(attackers.pid)
    until(lambda: len(process.net_connections()) <= before)


def test_attackers_end_with_whoever_started_them(server: ServerProcess) -> None:
    with Attackers(ATTACKS["ambiguous"], Target(server.http, server.grpc, server.process.pid)) as attackers:
        attackers.forget()
        until(lambda: is_gone(attackers.pid))
    assert attackers.outcomes.keys() <= ATTACKS["ambiguous"].wanted


def test_memory_that_came_and_went_counts() -> None:
    size = 64 << 20
    growth = MemoryGrowth(os.getpid())
    with mmap.mmap(-1, size) as memory:
        memory.write(bytes(size))
    peak_bytes = growth.peak_bytes()
    assert peak_bytes is not None
    assert peak_bytes > size // 2  # the system counts pages roughly
