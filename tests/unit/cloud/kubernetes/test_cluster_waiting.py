"""Waits, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from alipes.cloud.kubernetes.findings import Finding
from alipes.cloud.kubernetes.refusals import NoAnswer, Refused
from alipes.cloud.kubernetes.waiting import Look, Wait
from alipes.errors import CloudError, CloudTimeout

PULL = Finding("ErrImagePull", "pod a: no image")
Event = Look[str] | Exception


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds


def wait(events: Iterator[Event], *, timeout_s: float | None = None, clock: Clock | None = None) -> str:
    """The result of a wait that sees some events, one second after the other."""
    time = clock or Clock()

    def look() -> Look[str]:
        event = next(events)
        if isinstance(event, Exception):
            raise event
        return event

    one = Wait("deployment d", timeout_s, settle_s=15.0, clock=time, pause=time.pass_by)
    return one.until(look, lambda for_s: time.pass_by(1.0))


def forever(event: Callable[[], Event]) -> Iterator[Event]:
    while True:
        yield event()


def test_a_wait_ends_with_what_it_waits_for() -> None:
    assert wait(iter([Look(None, "0 of 1"), Look("ready")])) == "ready"


def test_a_reason_that_lasts_ends_the_wait() -> None:
    clock = Clock()
    with pytest.raises(CloudError, match=r"^deployment d cannot become ready: pod a: no image$") as found:
        wait(forever(lambda: Look(None, "0 of 1", (PULL,))), clock=clock)
    assert (found.value.reason, clock.now_s) == ("ErrImagePull", 15.0)


def test_what_may_not_be_watched_is_read_again_after_a_pause() -> None:
    clock = Clock()

    def refuse(for_s: int) -> None:
        raise Refused("jobs is forbidden: cannot watch", 403, "Forbidden")

    looks = iter([Look[str](None), Look[str](None), Look("ready")])
    one = Wait("job j", clock=clock, pause=clock.pass_by)
    assert one.until(lambda: next(looks), refuse) == "ready"
    assert 2 <= clock.now_s <= 6


def test_a_reason_that_passes_ends_nothing() -> None:
    brief = [Look[str](None, "", (PULL,))] * 10
    assert wait(iter([*brief, Look(None), *brief, Look("ready")])) == "ready"


def test_a_reason_of_one_pod_after_the_other_ends_nothing() -> None:
    moving = [Look[str](None, "", (Finding("Unschedulable", f"pod {pod}: no node"),)) for pod in range(40)]
    assert wait(iter([*moving, Look("ready")])) == "ready"


def test_a_final_reason_ends_the_wait_at_once() -> None:
    clock = Clock()
    with pytest.raises(CloudError, match="killed"):
        wait(iter([Look(None, "", (Finding("OOMKilled", "killed", is_final=True),))]), clock=clock)
    assert clock.now_s == 0.0


def test_the_reason_of_a_pod_explains_that_nothing_progresses() -> None:
    deadline = Finding("ProgressDeadlineExceeded", "has timed out progressing", is_final=True)
    probe = Finding("Unhealthy", "pod a: Readiness probe failed", may_pass=True)
    with pytest.raises(CloudError, match="Readiness probe failed") as found:
        wait(iter([Look(None, "", (deadline, probe))]))
    assert found.value.reason == "Unhealthy"
    with pytest.raises(CloudError, match="has timed out progressing"):
        wait(iter([Look(None, "", (deadline,))]))


def test_a_timeout_says_what_is_known() -> None:
    probe = Finding("Unhealthy", "pod a: Readiness probe failed", may_pass=True)
    expected = r"^deployment d is not ready after 5 s: 0 of 1; pod a: Readiness probe failed$"
    with pytest.raises(CloudTimeout, match=expected) as found:
        wait(forever(lambda: Look(None, "0 of 1", (probe,))), timeout_s=5)
    assert isinstance(found.value, TimeoutError)


def test_a_wait_goes_on_where_the_api_server_is_away() -> None:
    away = [NoAnswer("away")] * 5
    assert wait(iter([Look(None), *away, Look(None), *away, Look("ready")])) == "ready"


def test_an_api_server_that_stays_away_ends_the_wait() -> None:
    clock = Clock()
    with pytest.raises(CloudError, match="for 300 s away"):
        wait(forever(lambda: NoAnswer("away")), clock=clock)
    assert 300.0 <= clock.now_s < 310.0


def test_a_timeout_holds_while_the_api_server_is_away() -> None:
    with pytest.raises(CloudTimeout, match="the API server does not answer"):
        wait(forever(lambda: NoAnswer("away")), timeout_s=5)


def test_no_permission_ends_the_wait() -> None:
    with pytest.raises(Refused, match="may not"):
        wait(iter([Refused("may not", 403)]))


def test_no_permission_is_doubted_after_the_api_server_was_away() -> None:
    refused = Refused("may not", 403)
    assert wait(iter([NoAnswer("away"), refused, Look(None), refused, Look("ready")])) == "ready"
    late = [Look[str](None)] * 11
    with pytest.raises(Refused):
        wait(iter([NoAnswer("away"), *late, refused]))
