"""What an attack does to a client that behaves well, and to the server's memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from support.processes import is_gone
from support.steady_client import WIRES, Sample, SteadyClient, p99_s
from support.under_attack.attackers import Attackers
from support.under_attack.attacks import Attack
from support.under_attack.memory import MemoryGrowth
from support.under_attack.target import Target

PACE_PER_S: Final = 50.0
QUIET_S: Final = 3.0
LOUD_S: Final = 6.0
# Of a client and a server that have just been started.
WARM_UP_S: Final = 2.0
# A server that answers nobody for so long behind an attack does not recover.
RECOVERY_S: Final = 30.0

_LOOK_S: Final = 0.1


@dataclass(frozen=True)
class Measurement:
    """One attack on one server.

    Attributes:
        quiet_s: By wire, the 99th percentile of the steady client's latencies before the attack.
        loud_s: The same during the attack; without a wire over which no request was answered.
        due: Requests that were due during the attack.
        failures: Why some of them were not answered well.
        growth_bytes: By how much the server's resident memory grew at most; nothing where it died.
        alive: Whether the server's process goes on.
        recovery_s: Time from the end of the attack until the server answered well again over both wires, if it did.
        outcomes: What the attackers were told.
    """

    quiet_s: dict[str, float]
    loud_s: dict[str, float]
    due: int
    failures: Counter[str]
    growth_bytes: int | None
    alive: bool
    recovery_s: float | None
    outcomes: Counter[str]

    def ratio(self, wire: str) -> float | None:
        """How many times as long as before a request took at the 99th percentile."""
        return self.loud_s[wire] / self.quiet_s[wire] if wire in self.loud_s else None


def measure(target: Target, attack: Attack, pace_per_s: float = PACE_PER_S, loud_s: float = LOUD_S) -> Measurement:
    """Attacks a server that is quiet, and looks at it until it answers well again."""
    with SteadyClient(target.http, target.grpc, pace_per_s, forgiving=True) as client:
        quiet = _quiet(client)
        growth = MemoryGrowth(target.pid)
        with Attackers(attack, target) as attackers:
            begun_s = time.monotonic()
            time.sleep(loud_s)
            ended_s = time.monotonic()
            grown = growth.peak_bytes()
        samples = _until_recovered(client, ended_s)
    loud = [sample for sample in samples if begun_s <= sample.due_s < ended_s]
    return Measurement(
        _p99s_s(quiet),
        _p99s_s(loud),
        len(loud),
        Counter(sample.failure for sample in loud if sample.failure),
        grown,
        not is_gone(target.pid),
        _recovery_s(samples, ended_s),
        attackers.outcomes,
    )


def _quiet(client: SteadyClient) -> list[Sample]:
    time.sleep(WARM_UP_S)
    client.samples(at_least=0)
    time.sleep(QUIET_S)
    return client.samples(at_least=0)


def _until_recovered(client: SteadyClient, ended_s: float) -> list[Sample]:
    """All samples, until the attack's are over and a request over each wire has been answered well behind its end."""
    samples: list[Sample] = []
    while time.monotonic() < ended_s + RECOVERY_S:
        samples += client.samples(at_least=0)
        settled = {sample.wire for sample in samples if sample.due_s >= ended_s}
        if len(settled) == len(WIRES) and _recovery_s(samples, ended_s) is not None:
            break
        time.sleep(_LOOK_S)
    return samples


def _recovery_s(samples: Iterable[Sample], ended_s: float) -> float | None:
    first: dict[str, float] = {}
    for sample in samples:
        answered_s = sample.due_s + sample.latency_s
        if not sample.failure and answered_s >= ended_s:
            first.setdefault(sample.wire, answered_s)
    return max(first.values()) - ended_s if len(first) == len(WIRES) else None


def _p99s_s(samples: Iterable[Sample]) -> dict[str, float]:
    latencies_s: dict[str, list[float]] = {wire: [] for wire in WIRES}
    for sample in samples:
        if not sample.failure:
            latencies_s[sample.wire].append(sample.latency_s)
    return {wire: p99_s(found) for wire, found in latencies_s.items() if found}
