"""Which stage limits a model, by what happened to it."""

from __future__ import annotations

import math

import pytest
from alipes.advise import Advice, Change, Finding, Flow
from alipes.advise.estimate import ServiceTime, capacity, wait_ms
from alipes.advise.findings import Surroundings, find
from alipes.advise.processors import ProcessorReading, ProcessorUse, use_between
from alipes.config.pbtxt import parse_pbtxt
from alipes.monitor.prometheus import samples

NEAR = Surroundings(0.1, ProcessorUse(0.3))
BATCHING = "max_batch_size: 8 dynamic_batching { } instance_group { count: 2 }"


def flow(
    config: str = BATCHING,
    *,
    stages: tuple[float, float, float, float] = (0.1, 0.1, 5.0, 0.1),
    requests: int = 1000,
    batches: dict[int, tuple[int, float]] | None = None,
    seconds: float = 10.0,
    failures: int = 0,
) -> Flow:
    """By default one row in each execution of 5.2 ms."""
    found = batches if batches is not None else {1: (requests, sum(stages[1:]))}
    names = ("queue", "compute_input", "compute_infer", "compute_output")
    rows = sum(size * count for size, (count, _) in found.items())
    return Flow(
        "m",
        parse_pbtxt(config),
        seconds,
        requests,
        failures,
        rows,
        sum(count for count, _ in found.values()),
        sum(stages),
        dict(zip(names, stages, strict=True)),
        found,
    )


def test_busy_instances_with_a_queue_want_another_one() -> None:
    found = find(flow(stages=(20, 0, 5, 0), requests=3900), NEAR)
    assert (found.stage, found.change) == ("queue", Change("instances", 2, 3))
    assert "instances busy for 98% of the time; 80% of the latency is the queue" in found.evidence
    assert found.gain == "up to 600 inferences/s instead of 400, a wait of 2.01 ms instead of 20 ms"


def test_on_a_full_machine_another_instance_brings_nothing() -> None:
    found = find(flow(stages=(20, 0, 5, 0), requests=3900), Surroundings(0.1, ProcessorUse(0.97)))
    assert (found.stage, found.change) == ("queue", None)
    # Whose they are is not known, so nobody is blamed.
    assert "in use to 97%, whether by the server or by others is not known" in found.evidence
    assert "move them or the server; else the machine is full" in found.advice
    unknown = find(flow(stages=(20, 0, 5, 0), requests=3900), Surroundings(0.1))
    assert unknown.gain.endswith("as far as the machine has processors for it")


@pytest.mark.parametrize(
    ("use", "change", "advice"),
    [
        (ProcessorUse(0.99, 0.02, own=0.05), Change("instances", 2, 3), "add an instance"),
        (ProcessorUse(0.99, 0.9, own=7.2), None, "the machine is full"),
        (ProcessorUse(0.1, 0.9, own=0.9), None, "the machine is full"),
        (ProcessorUse(0.99, 0.2, own=1.6), None, "other programs take the processors"),
        (ProcessorUse(0.99, 0.2, own=1.6, by_model={"m": 0.01}), Change("instances", 2, 3), "add an instance"),
        (ProcessorUse(0.99, 0.2, own=0.1, by_model={"m": 1.5}), None, "other programs take the processors"),
        (ProcessorUse(0.5, 0.2, own=1.6), Change("instances", 2, 3), "add an instance"),
    ],
)
def test_the_servers_own_use_decides_whether_its_machine_is_full(
    use: ProcessorUse, change: Change | None, advice: str
) -> None:
    """Two instances, which are busy for nearly all of the time."""
    found = find(flow(stages=(20, 0, 5, 0), requests=3900), Surroundings(0.1, use))
    assert (found.change, found.advice.startswith(advice)) == (change, True), found


@pytest.mark.parametrize("stages", [(0, 0, 20, 0), (20, 0, 20, 0), (5, 20, 5, 0), (0, 0.1, 0.1, 0)])
@pytest.mark.parametrize("requests", [30, 150])
def test_idle_instances_are_not_blamed_on_the_load_of_neighbours(stages: tuple[float, ...], requests: int) -> None:
    """A model that sleeps, in a queue or not; one that few ask; one whose tensors are large."""
    for use in (ProcessorUse(0.99, 0.02, own=0.05), ProcessorUse(0.99, 0.01, own=0.05, by_model={"m": 0.03})):
        found = find(flow(stages=stages, requests=requests), Surroundings(0.1, use))
        assert "processors" not in f"{found.evidence} {found.advice}", found
        assert "machine" not in f"{found.evidence} {found.advice}", found


def test_the_use_of_processors_is_what_was_added_between_two_readings() -> None:
    page = """
nv_cpu_utilization 0.75
alipes_processors 4
process_cpu_seconds_total {server}
alipes_worker_cpu_seconds_total{{model="m",version="1",instance="m_0"}} {old}
alipes_worker_cpu_seconds_total{{instance="m_1",model="m",version="1"}} {again}
"""
    before = ProcessorReading.of(10, list(samples(page.format(server=10, old=5, again=7))))
    new = 'alipes_worker_cpu_seconds_total{model="n",version="1",instance="n_0"} 1\n'
    after = ProcessorReading.of(12, list(samples(page.format(server=11, old=8, again=1) + new)))
    use = use_between(before, after)
    assert use == ProcessorUse(0.75, (0.5 + 1.5 + 0.5 + 0.5) / 4, 0.5, {"m": 2.0, "n": 0.5})
    assert (use.of_model("m"), use.of_model("native")) == (2.0, 0.5)
    assert use_between(ProcessorReading(0), after).own_share is None
    assert use_between(before, ProcessorReading(12)) == ProcessorUse()


def test_full_batches_whose_rows_cost_little_want_to_be_larger() -> None:
    """4 ms for each execution and 0.5 ms for each row."""
    batches = {4: (100, 6.0), 8: (2000, 8.0)}
    found = find(flow(stages=(30, 0, 8, 0), requests=16400, batches=batches), NEAR)
    assert (found.stage, found.change) == ("queue", Change("max_batch_size", 8, 16))
    assert "batches are full with 7.81 rows" in found.evidence
    assert found.gain == "up to 2,667 inferences/s instead of 1,976"


def test_full_batches_whose_rows_cost_the_same_want_instances() -> None:
    batches = {4: (100, 4.0), 8: (2000, 8.0)}
    found = find(flow(stages=(30, 0, 8, 0), requests=16400, batches=batches), NEAR)
    assert found.change == Change("instances", 2, 3)


def test_a_wait_for_company_that_does_not_come_is_seen() -> None:
    config = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 3000 }"
    found = find(flow(config, stages=(3, 0, 1, 0), requests=100), NEAR)
    assert (found.stage, found.change) == ("queue", Change("queue_delay_us", 3000, 0))
    assert found.gain == "a latency of 1 ms instead of 4 ms"


@pytest.mark.parametrize(("backend", "stage"), [("python", "Python"), ("onnxruntime", "engine")])
def test_busy_instances_without_a_queue_are_the_model_itself(backend: str, stage: str) -> None:
    found = find(flow(f'backend: "{backend}" {BATCHING}', requests=3500), NEAR)
    assert (found.stage, found.change) == (stage, Change("instances", 2, 3))


def test_a_server_that_waits_says_for_whom() -> None:
    assert find(flow(requests=100), NEAR).stage == "client"
    assert find(flow(requests=100), Surroundings(25.0)).stage == "network"
    assert find(flow(stages=(0, 2, 1, 1), requests=100), NEAR).stage == "tensors"


def test_few_requests_tell_nothing_and_ensembles_little() -> None:
    assert find(flow(requests=3, failures=2), NEAR).stage == "unknown"
    assert find(flow('platform: "ensemble"'), NEAR).stage == "steps"
    assert "7 failed" in find(flow(failures=7), NEAR).evidence


def test_figures_of_a_flow_follow_from_its_counts() -> None:
    one = flow(batches={1: (100, 2.0), 4: (100, 5.0)}, requests=500, stages=(1, 0, 4, 0))
    assert (one.rate, one.mean_batch, one.execution_ms, one.in_server) == (50, 2.5, 3.5, pytest.approx(0.25))
    assert one.busy == pytest.approx(200 * 3.5 / 1000 / 10 / 2)


def test_service_times_are_a_line_through_what_was_seen() -> None:
    fitted = ServiceTime.of({1: (10, 3.0), 2: (30, 4.0), 8: (5, 10.0)})
    assert (fitted.fixed_ms, fitted.row_ms, fitted.is_fitted) == (pytest.approx(2), pytest.approx(1), True)
    assert fitted.of_batch(16) == pytest.approx(18)
    assert ServiceTime.of({4: (10, 8.0)}) == ServiceTime(0.0, 2.0, False)
    assert not ServiceTime.of({}).is_fitted
    falling = ServiceTime.of({1: (10, 5.0), 8: (10, 3.0)})
    assert falling.row_ms == 0


def test_the_wait_is_erlangs() -> None:
    """One instance, half busy: the wait is one service time. Two of them: a third, as tables of M/M/2 have it."""
    half = flow(stages=(0, 0, 10, 0), requests=500)
    assert wait_ms(half, 1) == pytest.approx(10)
    full = flow(stages=(0, 0, 10, 0), requests=1000)
    assert wait_ms(full, 2) == pytest.approx(10 / 3)
    assert wait_ms(full, 1) == math.inf
    assert capacity(2, 4, 10) == 800
    assert capacity(1, 1, 0) == math.inf


def test_advice_as_text_has_the_lines_of_each_finding() -> None:
    change = Change("instances", 1, 2)
    waiting = Finding("a", "queue", "waits", "have more instances", "twice as many", change)
    idle = Finding("b", "client", "idles", "send more")
    assert str(Advice("localhost:8000", 5.0, [waiting, idle], [])).splitlines() == [
        "a: queue",
        "  seen:   waits",
        f"  do:     have more instances ({change})",
        "  brings: twice as many",
        "b: client",
        "  seen:   idles",
        "  do:     send more",
    ]
    assert str(Advice("localhost:8000", 5.0, [], [])) == "no model was asked in 5 s: look while there is traffic"
