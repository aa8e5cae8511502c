"""Every attack of `support.under_attack`, against a server with default flags, beside a client that behaves well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.models import add_model, times
from support.server import ServerProcess
from support.steady_client import WIRES
from support.under_attack.attacks import ATTACKS
from support.under_attack.measurement import Measurement, measure
from support.under_attack.servers import MODELS
from support.under_attack.table import cell
from support.under_attack.target import Target

pytestmark = [
    pytest.mark.proof,
    pytest.mark.alone,
    pytest.mark.slow("measures eleven seconds of quiet and of an attack, three to five times"),
]

# How many times its quiet 99th percentile a client that behaves well may wait.
MOST_RATIO: Final = 3.0
# Latencies below this are noise, whatever the ratio: attackers, server and client share two cores here, so that the
# client waits for some time slices of 3 ms of the others, and a 99th percentile of 300 requests is its third longest.
NOISE_S: Final = 0.03
ROUNDS: Final = 5

# Growth of the server's memory that is allowed for each byte of the requests that an attack has under way: the body,
# expanded, as tensors, and the response.
BYTES_FOR_A_BYTE: Final = 4
# The same whatever the attack: buffers of connections, and what the allocator keeps of them.
BYTES_BESIDE: Final = 192 << 20


@pytest.fixture
def target(repository: Path, serve: Callable[..., ServerProcess]) -> Target:
    for model in MODELS:
        add_model(repository, model, times(columns="columns"))
    server = serve(repository)
    return Target(server.http, server.grpc, server.process.pid)


def is_hardly_noticed(measured: Measurement) -> bool:
    """Whether a client that behaves well waits about as long as without the attack."""
    return all(
        wire in measured.loud_s and measured.loud_s[wire] < max(MOST_RATIO * measured.quiet_s[wire], NOISE_S)
        for wire in WIRES
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_a_client_that_behaves_well_hardly_notices(target: Target, name: str) -> None:
    attack = ATTACKS[name]
    rounds: list[Measurement] = []
    # The median is known as soon as most of them agree.
    while max(map([is_hardly_noticed(one) for one in rounds].count, (True, False))) <= ROUNDS // 2:
        measured = measure(target, attack)
        assert measured.alive
        assert measured.recovery_s is not None, "the server answers nobody any more"
        assert measured.failures == {}
        assert not attack.wanted or measured.outcomes.keys() <= attack.wanted, measured.outcomes
        assert measured.growth_bytes is not None
        assert measured.growth_bytes < BYTES_FOR_A_BYTE * attack.under_way_bytes + BYTES_BESIDE
        rounds.append(measured)
    assert sum(map(is_hardly_noticed, rounds)) > ROUNDS // 2, "\n".join(cell([one]) for one in rounds)
