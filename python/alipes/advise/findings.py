"""Which stage limits a model, what to change, and what that would bring."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from alipes.advise.estimate import ServiceTime, capacity, wait_ms
from alipes.advise.processors import ProcessorUse
from alipes.advise.reading import Flow
from alipes.config.platforms import ENSEMBLE, GRAPH

__all__ = ["Change", "Finding", "Surroundings", "find"]

Stage: TypeAlias = Literal["queue", "engine", "Python", "tensors", "network", "client", "steps", "unknown"]

_OF_STEPS: Final = {ENSEMBLE: "an ensemble", GRAPH: "a graph"}
"""The platforms whose models compute nothing themselves."""

_FEW: Final = 20
"""Fewer requests say nothing."""
_SHARE: Final = 0.3
"""Share of the latency from which a stage counts."""
_BUSY: Final = 0.7
"""Share of time from which instances are busy."""
_IDLE: Final = 0.3
"""Share of time below which instances are idle: requests that wait came together, and lack no processor."""
_FULL: Final = 0.85
"""Share of the processors from which more instances find none."""
_COMPUTES: Final = 0.2
"""Share of an execution's time on a processor from which it computes; below, it waits for something else."""
_NEARLY: Final = 0.8


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around the models.

    Attributes:
        round_trip_ms: Of a call that costs next to nothing.
        use: Of processors, by the server and by its machine.
    """

    round_trip_ms: float
    use: ProcessorUse = field(default_factory=ProcessorUse)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a configuration.

    Attributes:
        knob: By its name among `alipes.tune.KNOBS`.
        before: The value now.
        after: The value to try.
    """

    knob: str
    before: int
    after: int

    def __str__(self) -> str:
        """For people."""
        return f"{self.knob} {self.after} instead of {self.before}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What limits a model.

    Attributes:
        model: Its name.
        stage: Which part of the way.
        evidence: What was seen.
        advice: What to do.
        gain: What it would bring, by the model of a queue; empty where that cannot be said.
        change: The same as a change of the configuration; `None` where it is another thing to do.
    """

    model: str
    stage: Stage
    evidence: str
    advice: str
    gain: str = ""
    change: Change | None = None

    def lines(self) -> list[str]:
        """For people: the model and its stage, then what was seen, what to do and what that would bring."""
        change = f" ({self.change})" if self.change is not None else ""
        lines = [f"{self.model}: {self.stage}", f"  seen:   {self.evidence}", f"  do:     {self.advice}{change}"]
        return [*lines, f"  brings: {self.gain}"] if self.gain else lines


def find(flow: Flow, around: Surroundings) -> Finding:
    """What limits a model by what happened to it."""
    if flow.requests < _FEW:
        return Finding(
            flow.model,
            "unknown",
            f"{flow.requests} requests were answered in {flow.seconds:.3g} s, {flow.failures} failed: too few to tell",
            "look while there is traffic, or for longer",
        )
    if flow.config.platform in _OF_STEPS:
        return _steps(flow)
    if flow.queue_ms >= _SHARE * flow.mean_ms:
        return _queue(flow, around)
    if flow.tensors_ms >= _SHARE * flow.mean_ms:
        return _tensors(flow)
    return _engine(flow, around) if flow.busy >= _BUSY else _outside(flow, around)


def _tensors(flow: Flow) -> Finding:
    return Finding(
        flow.model,
        "tensors",
        f"{_seen(flow)}; {_share(flow.tensors_ms, flow)} of the latency gathers inputs and splits outputs",
        "send what is large as binary tensors or in shared memory, and batches that are not split",
    )


def _outside(flow: Flow, around: Surroundings) -> Finding:
    """The server has time left."""
    if around.round_trip_ms <= flow.mean_ms:
        return _client(flow)
    return Finding(
        flow.model,
        "network",
        f"{_seen(flow)}; the way to the server and back takes {around.round_trip_ms:.3g} ms by itself",
        "ask from nearer by, keep connections open, or put several rows into one request",
        f"{around.round_trip_ms / (around.round_trip_ms + flow.mean_ms):.0%} of what a client waits is the way",
    )


def _steps(flow: Flow) -> Finding:
    return Finding(
        flow.model,
        "steps",
        f"{flow.rate:,.0f} inferences/s, {flow.mean_ms:.3g} ms each",
        f"look at its models: {_OF_STEPS[flow.config.platform]} has no queue and no instances of its own",
    )


def _queue(flow: Flow, around: Surroundings) -> Finding:
    evidence = f"{_seen(flow)}; {_share(flow.queue_ms, flow)} of the latency is the queue"
    batching = flow.config.dynamic_batching
    delay_us = batching.max_queue_delay_microseconds if flow.config.HasField("dynamic_batching") else 0
    if flow.busy < _BUSY and delay_us and flow.mean_batch < _NEARLY * flow.config.max_batch_size:
        saved = min(flow.queue_ms, delay_us / 1000)
        return Finding(
            flow.model,
            "queue",
            f"{evidence}: requests wait up to {delay_us:,} µs for company, and batches have {flow.mean_batch:.3g} rows",
            "wait less for fuller batches",
            f"a latency of {flow.mean_ms - saved:.3g} ms instead of {flow.mean_ms:.3g} ms",
            Change("queue_delay_us", delay_us, 0),
        )
    return _larger_batch(flow, evidence) or _instances(flow, around, "queue", evidence)


def _larger_batch(flow: Flow, evidence: str) -> Finding | None:
    """A larger batch, where the batches are full and rows in company cost less."""
    largest = flow.config.max_batch_size
    service = ServiceTime.of(flow.batches)
    if largest < 1 or flow.mean_batch < _NEARLY * largest or not flow.config.HasField("dynamic_batching"):
        return None
    now = capacity(flow.instances, flow.mean_batch, flow.execution_ms)
    then = capacity(flow.instances, 2 * largest, service.of_batch(2 * largest))
    if service.is_fitted and then < now * 1.05:
        return None
    gain = f"up to {then:,.0f} inferences/s instead of {now:,.0f}" if service.is_fitted else ""
    return Finding(
        flow.model,
        "queue",
        f"{evidence}, and batches are full with {flow.mean_batch:.3g} rows",
        "allow larger batches",
        gain,
        Change("max_batch_size", largest, 2 * largest),
    )


def _instances(flow: Flow, around: Surroundings, stage: Stage, evidence: str) -> Finding:
    full = _full(flow, around.use)
    if full is not None:
        seen, advice = full
        return Finding(flow.model, stage, f"{evidence}; {seen}", advice)
    more = flow.instances + 1
    now, then = (capacity(number, flow.mean_batch, flow.execution_ms) for number in (flow.instances, more))
    gain = f"up to {then:,.0f} inferences/s instead of {now:,.0f}"
    wait = wait_ms(flow, more)
    if stage == "queue" and math.isfinite(wait):
        gain += f", a wait of {wait:.3g} ms instead of {flow.queue_ms:.3g} ms"
    is_known = around.use.own_share is not None or around.use.machine_share is not None
    condition = "" if is_known else ", as far as the machine has processors for it"
    return Finding(
        flow.model,
        stage,
        evidence,
        "add an instance" if stage != "Python" else "add a worker process: an instance",
        gain + condition,
        Change("instances", flow.instances, more),
    )


def _full(flow: Flow, use: ProcessorUse) -> tuple[str, str] | None:
    """What was seen and what to do where another instance would find no processor; `None` where it would."""
    machine = use.machine_share if use.machine_share is not None else 0.0
    if use.own_share is None:
        seen = f"the machine's processors are in use to {machine:.0%}, whether by the server or by others is not known"
        advice = (
            "see in `top` who takes the processors: beside others, move them or the server; else the machine is full"
        )
        return (seen, advice) if machine > _FULL else None
    if use.own_share > _FULL:
        seen = f"the server itself uses {use.own_share:.0%} of its processors"
        return seen, "the machine is full: take another server beside it, or a smaller model"
    # The neighbours' load slows executions down that compute; those that sleep or ask a database hardly notice it.
    computes = flow.busy >= _IDLE and use.of_model(flow.model) >= _COMPUTES * flow.busy * flow.instances
    if machine > _FULL and computes:
        seen = f"the machine's processors are in use to {machine:.0%}, the server's own part is {use.own_share:.0%}"
        return seen, "other programs take the processors: move them elsewhere, or the server"
    return None


def _client(flow: Flow) -> Finding:
    return Finding(
        flow.model,
        "client",
        f"{_seen(flow)}; {flow.in_server:.2g} requests are in the server at a time",
        "send more requests at once: the server waits for its clients",
        f"up to {capacity(flow.instances, max(flow.mean_batch, 1), flow.execution_ms):,.0f} inferences/s at this batch",
    )


def _engine(flow: Flow, around: Surroundings) -> Finding:
    stage: Stage = "Python" if flow.config.backend == "python" else "engine"
    evidence = f"{_seen(flow)}; {_share(flow.infer_ms, flow)} of the latency is the model"
    return _instances(flow, around, stage, evidence)


def _seen(flow: Flow) -> str:
    words = f"{flow.rate:,.0f} inferences/s, {flow.mean_ms:.3g} ms each, instances busy for {flow.busy:.0%} of the time"
    return f"{words}, {flow.failures:,} failed" if flow.failures else words


def _share(part_ms: float, flow: Flow) -> str:
    return f"{part_ms / flow.mean_ms:.0%}"
