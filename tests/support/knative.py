"""Knative's own scaler, asked for its decisions; `python -m support.knative`, in `tests`, records the vectors."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from alipes.autoscale import KnativeScaler, KnativeSettings

from support.kube import need, program_file
from support.waiting import TIMEOUT_S

PROGRAM = "kn-decide"
VECTORS: Final = Path(__file__).parents[1] / "vectors" / "autoscale" / "knative.json"
PREFIX: Final = "autoscaling.knative.dev/"

Decisions = list[tuple[int, int, int]]
"""At each tick: replicas wanted, the same within bounds, excess burst capacity."""


@dataclass(frozen=True)
class Scenario:
    """A service and its load, second by second.

    Attributes:
        name: Of the scenario.
        values: What is counted in each second.
        concurrency: Its limit of requests at a time.
        ready: Replicas at the beginning; each decision is followed at once.
        counts: How many replicas are ready in each second, where decisions are not followed.
        annotations: Of the service, without their prefix.
        config: Of the cluster.
    """

    name: str
    values: Sequence[float]
    concurrency: int = 0
    ready: int = 1
    counts: Sequence[int] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """What `kn-decide` reads."""
        annotations = {PREFIX + name: value for name, value in self.annotations.items()}
        first = {"containerConcurrency": self.concurrency, "annotations": annotations, "config": self.config}
        seconds: list[dict[str, Any]] = [{"value": value} for value in self.values]
        for second, count in zip(seconds, self.counts, strict=False):
            second["ready"] = count
        return [json.dumps(line) for line in ({**first, "ready": self.ready}, *seconds)]


def decided_by_knative(scenarios: Iterable[Scenario]) -> list[Decisions]:
    """Knative's decisions in each scenario.

    Raises:
        Missing: If its program is not built.
    """
    need(PROGRAM)
    known = list(scenarios)
    done = subprocess.run(
        [program_file(PROGRAM)],
        input="\n".join(line for scenario in known for line in scenario.lines()),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ticks = [json.loads(line) for line in done.stdout.splitlines()]
    decisions = [(tick["desired"], tick["bounded"], tick["excess"]) for tick in ticks]
    assert len(decisions) == sum(len(scenario.values) // 2 for scenario in known)
    parts = iter(decisions)
    return [[next(parts) for _ in range(len(scenario.values) // 2)] for scenario in known]


def decided_here(scenario: Scenario) -> Decisions:
    """Our decisions in a scenario."""
    settings = KnativeSettings(container_concurrency=scenario.concurrency)
    scaler = KnativeScaler(settings.with_values(scenario.annotations | scenario.config), scenario.ready)
    ready, decisions = scenario.ready, []
    for second, value in enumerate(scenario.values):
        if scenario.counts:
            ready = scenario.counts[second]
        scaler.record(second, value)
        if second % 2 == 1:
            decision = scaler.tick(second, ready)
            decisions.append((decision.desired, decision.bounded, decision.excess_burst_capacity))
            if not scenario.counts:
                ready = decision.bounded
    return decisions


def scenarios() -> list[Scenario]:
    """Those whose decisions are recorded."""
    ramp = [second / 4 for second in range(240)]
    burst = [2.0] * 90 + [60.0] * 40 + [2.0] * 150
    fall = [30.0] * 80 + [1.0] * 160
    spikes = [40.0 if second % 47 < 3 else 1.0 for second in range(300)]
    return [
        Scenario("ramp", ramp, concurrency=5),
        Scenario("ramp without a limit", [4 * value for value in ramp]),
        Scenario("burst with panic", burst, concurrency=5),
        Scenario("scale down with delay", fall, concurrency=4, annotations={"scale-down-delay": "45s"}),
        Scenario("scale from zero", [0.0] * 70 + [9.0] * 70, concurrency=3, ready=0),
        Scenario("scale to zero", [6.0] * 70 + [0.0] * 130, concurrency=3),
        Scenario("max-scale", burst, concurrency=2, annotations={"max-scale": "7"}),
        Scenario("min-scale", fall, concurrency=2, annotations={"min-scale": "3"}),
        Scenario("activation-scale", [0.0] * 30 + [1.0] * 80, concurrency=2, annotations={"activation-scale": "4"}),
        Scenario("spikes", spikes, concurrency=3),
        Scenario("slow replicas", burst, concurrency=5, counts=[1] * 120 + [12] * 60 + [3] * 100),
        Scenario("several at the beginning", [1.0] * 150, concurrency=5, ready=6),
        Scenario("short window", spikes, annotations={"window": "15s", "panic-window-percentage": "30", "target": "4"}),
        Scenario("requests per second", [20 * value for value in ramp], annotations={"metric": "rps", "target": "90"}),
        Scenario("late panic", burst, concurrency=5, annotations={"panic-threshold-percentage": "900"}),
        Scenario("utilization", ramp, concurrency=10, annotations={"target-utilization-percentage": "55"}),
        Scenario("burst capacity", ramp, concurrency=5, annotations={"target-burst-capacity": "0"}),
        Scenario("always proxied", ramp, concurrency=5, annotations={"target-burst-capacity": "-1"}),
        Scenario("slow steps", burst, concurrency=1, config={"max-scale-up-rate": "1.5", "max-scale-down-rate": "1.2"}),
    ]


def random_scenario(number: int) -> Scenario:
    """A service and a load by chance."""
    chance = random.Random(number)
    values: list[float] = []
    while len(values) < chance.randint(60, 500):
        level, span = chance.choice((0.0, chance.uniform(0, 3), chance.uniform(0, 400))), chance.randint(1, 120)
        noise = chance.choice((0.0, 0.3))
        values += [level * (1 + noise * chance.uniform(-1, 1)) for _ in range(span)]
    annotations = {
        "window": f"{chance.randint(6, 180)}s",
        "panic-window-percentage": str(chance.randint(1, 100)),
        "panic-threshold-percentage": str(chance.randint(110, 1000)),
        "scale-down-delay": f"{chance.randint(0, 120)}s",
        "activation-scale": str(chance.randint(1, 6)),
        "target": f"{chance.uniform(0.5, 60):.2f}",
        "target-utilization-percentage": str(chance.randint(1, 100)),
        "target-burst-capacity": str(chance.choice((-1, 0, chance.randint(1, 500)))),
        "min-scale": str(chance.randint(0, 3)),
        "max-scale": str(chance.choice((0, chance.randint(3, 40)))),
        "metric": chance.choice(("concurrency", "rps")),
    }
    chosen = {name: value for name, value in annotations.items() if chance.random() < 0.4}
    rates = {"max-scale-up-rate": chance.uniform(1.1, 20), "max-scale-down-rate": chance.uniform(1.1, 5)}
    config = {name: f"{rate:.3f}" for name, rate in rates.items() if chance.random() < 0.3}
    counts = [chance.randint(0, 30) for _ in values] if chance.random() < 0.3 else []
    return Scenario(
        f"random {number}", values, chance.choice((0, 1, 5, 20)), chance.randint(0, 9), counts, chosen, config
    )


def record() -> None:
    """Writes Knative's decisions, those that repeat as a count."""
    known = scenarios()
    rows = [
        f"{json.dumps(scenario.name)}: {json.dumps(_repeated(decisions), separators=(',', ':'))}"
        for scenario, decisions in zip(known, decided_by_knative(known), strict=True)
    ]
    VECTORS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def _repeated(decisions: Decisions) -> list[list[int]]:
    rows: list[list[int]] = []
    for decision in decisions:
        if rows and rows[-1][1:] == list(decision):
            rows[-1][0] += 1
        else:
            rows.append([1, *decision])
    return rows


def recorded() -> dict[str, Decisions]:
    """Knative's decisions by the name of the scenario."""
    rows = json.loads(VECTORS.read_text(encoding="utf-8"))
    return {
        name: [(desired, bounded, excess) for count, desired, bounded, excess in parts for _ in range(count)]
        for name, parts in rows.items()
    }


if __name__ == "__main__":
    record()
