"""What a server says of itself at one moment, and what happened between two."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from alipes.client.model_counts import STAGES, ModelCounts
from alipes.config.override import from_document
from alipes.config.schema import ModelConfig

if TYPE_CHECKING:
    from alipes.client import Client

__all__ = ["Flow", "Reading", "flows", "round_trip_ms"]

_PROBES: Final = 9


@dataclass(frozen=True)
class _Counts:
    """Counters of a model, over all of its versions; times in nanoseconds."""

    rows: int = 0
    executions: int = 0
    success: tuple[int, int] = (0, 0)
    failures: int = 0
    stages: Mapping[str, int] = field(default_factory=dict)
    batches: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, versions: list[dict[str, Any]]) -> Self:
        counts = ModelCounts.of_all(versions)
        success = counts.part("success")
        return cls(
            counts.rows,
            counts.executions,
            (success.count, success.ns),
            counts.part("fail").count,
            {stage: counts.part(stage).ns for stage in STAGES},
            {
                size: (stages["compute_infer"].count, sum(one.ns for one in stages.values()))
                for size, stages in counts.batches.items()
            },
        )


@dataclass(frozen=True)
class Reading:
    """What a server said at one moment.

    Attributes:
        moment_s: When, on a clock that only goes forward.
        counts: By model.
    """

    moment_s: float
    counts: Mapping[str, _Counts]

    @classmethod
    def now(cls, client: Client, model: str = "") -> Self:
        """Reads the statistics of all models that are loaded, or of one."""
        by_model: dict[str, list[dict[str, Any]]] = {}
        for version in client.statistics(model):
            by_model.setdefault(str(version["name"]), []).append(version)
        return cls(time.monotonic(), {name: _Counts.of(versions) for name, versions in by_model.items()})


@dataclass(frozen=True)
class Flow:
    """What happened to a model between two readings; times are means in milliseconds.

    Attributes:
        model: Its name.
        config: Its configuration.
        seconds: Between the readings.
        requests: That were answered.
        failures: That were not.
        rows: That were executed.
        executions: That is, batches.
        mean_ms: From arrival to answer.
        stages_ms: Of it, in the queue, gathering inputs, in the model, splitting outputs.
        batches: By rows: how many executions there were, and their mean milliseconds.
    """

    model: str
    config: ModelConfig
    seconds: float
    requests: int
    failures: int
    rows: int
    executions: int
    mean_ms: float
    stages_ms: Mapping[str, float]
    batches: Mapping[int, tuple[int, float]] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    @property
    def queue_ms(self) -> float:
        """Mean wait."""
        return self.stages_ms["queue"]

    @property
    def infer_ms(self) -> float:
        """Mean time in the model."""
        return self.stages_ms["compute_infer"]

    @property
    def tensors_ms(self) -> float:
        """Mean time in which inputs are gathered and outputs split."""
        return self.stages_ms["compute_input"] + self.stages_ms["compute_output"]

    @property
    def instances(self) -> int:
        """How many there are."""
        return max(1, sum(int(group.count) for group in self.config.instance_group))

    @property
    def mean_batch(self) -> float:
        """Rows of an execution."""
        return self.rows / self.executions if self.executions else 0.0

    @property
    def execution_ms(self) -> float:
        """Mean time of an execution, which keeps an instance busy."""
        count = sum(number for number, _ in self.batches.values())
        if count:
            return sum(number * mean for number, mean in self.batches.values()) / count
        return self.infer_ms + self.tensors_ms

    @property
    def busy(self) -> float:
        """Mean share of time in which an instance executes."""
        return min(1.0, self.executions * self.execution_ms / 1000 / self.seconds / self.instances)

    @property
    def in_server(self) -> float:
        """Mean number of requests that are in the server. Source: Little's law."""
        return self.requests / self.seconds * self.mean_ms / 1000


def flows(before: Reading, after: Reading, client: Client) -> list[Flow]:
    """What happened to each model that was asked meanwhile; most time first."""
    found = []
    for model, counts in after.counts.items():
        old = before.counts.get(model, _Counts())
        if counts.success[0] - old.success[0] + counts.failures - old.failures > 0:
            config = from_document(client.config(model))
            found.append(_flow(model, config, old, counts, after.moment_s - before.moment_s))
    return sorted(found, key=lambda flow: -flow.requests * flow.mean_ms)


def _flow(model: str, config: ModelConfig, old: _Counts, new: _Counts, seconds: float) -> Flow:
    requests = new.success[0] - old.success[0]
    share = 1 / requests / 1e6 if requests else 0.0
    batches = {}
    for size, (count, time_ns) in new.batches.items():
        old_count, old_ns = old.batches.get(size, (0, 0))
        if count > old_count:
            batches[size] = count - old_count, (time_ns - old_ns) / (count - old_count) / 1e6
    return Flow(
        model,
        config,
        seconds,
        requests,
        new.failures - old.failures,
        new.rows - old.rows,
        new.executions - old.executions,
        (new.success[1] - old.success[1]) * share,
        {stage: (new.stages[stage] - old.stages.get(stage, 0)) * share for stage in STAGES},
        batches,
    )


def round_trip_ms(client: Client) -> float:
    """Median time of a call that costs the server next to nothing: network, client and server's ends of it."""
    times = []
    for _ in range(_PROBES):
        begun = time.perf_counter()
        client.is_live()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1000
