"""A rollout of a canary against a service and pods of a few lines: which shares it sets, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes.cli.rollout_view import end_of_canary
from alipes.cloud.kubernetes.refusals import NoAnswer, Refused
from alipes.errors import CloudError, ConfigError
from alipes.rollout import Journal, Look, RolloutEnd
from alipes.rollout.canary import API_SERVER, KServeCanary
from alipes.rollout.drive import drive
from alipes.rollout.plan import CanaryPlan
from alipes.rollout.pod_counts import PodCounts
from support.fake_pods import CANARY, FakePod, FakePods, FakeServices

QUICK = {"step_s": 0.01, "last_step_s": 5.0, "look_s": 0.001}


class Clock:
    """A clock that goes on by so many seconds whenever it is read."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.step_s, self.now_s = step_s, 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


class Rig:
    """A service with four pods, each with so many requests between two looks."""

    def __init__(self, failed: int = 0, requests: int = 50_000) -> None:
        self.pods = FakePods(a=FakePod(), b=FakePod(), c=FakePod(is_candidate=True), d=FakePod(is_candidate=True))
        self.services = FakeServices(self.pods)
        self.stop = threading.Event()
        self.looks: list[Look] = []
        self.clock = Clock()
        self.at_look: Callable[[int], None] = lambda _: None
        self._failed, self._requests = failed, requests

    def serve(self) -> None:
        for pod in self.pods.members.values():
            pod.serve(self._requests, self._failed if pod.is_candidate else 0)

    def run(self, journal: Path | None = None, **more: Any) -> RolloutEnd:
        plan = CanaryPlan("m", "predictor", "next", **{"steps": (10, 50), **QUICK, **more})
        counts = PodCounts(self.pods.reach, "m")
        target = KServeCanary(self.services, CANARY, counts, plan.look_s, self.stop, self.clock)
        target.check()
        divide = target.divide

        def divided(share: float, *, resumed: bool) -> str | None:
            reason = divide(share, resumed=resumed)
            self.serve()
            return reason

        def watch(look: Look) -> None:
            self.looks.append(look)
            self.at_look(len(self.looks) - 1)
            self.serve()

        target.divide = divided  # type: ignore[method-assign]  # requests come once a step has begun
        end = drive(target, plan, Journal(journal), watch, self.stop)
        target.clear()
        return end


def test_a_good_canary_goes_through_all_steps_and_is_promoted() -> None:
    rig = Rig()
    end = rig.run()
    assert (end.promoted, end.servers, rig.services.is_promoted) == (True, ("a", "b", "c", "d"), True)
    assert rig.services.shares == [10, 50]
    assert [(look.share, look.candidate.requests) for look in rig.looks] == [(10, 100_000), (50, 100_000)]
    assert [pod.weights for pod in rig.pods.members.values()] == [{}] * 4
    assert end_of_canary(end, "iris") == (
        "the canary of iris has all requests now: no comparison found the candidate worse"
    )


def test_a_canary_that_fails_more_is_rolled_back() -> None:
    rig = Rig(failed=5_000)
    end = rig.run()
    assert not end.promoted
    assert end.reason.startswith("errors: worse by 9."), end.reason
    assert (rig.services.shares, rig.services.canary, rig.services.is_promoted) == ([10], None, False)
    assert end_of_canary(end, "iris").startswith("the canary of iris is taken back: errors: worse by 9.")


def test_pods_that_are_replaced_meanwhile_end_nothing() -> None:
    rig = Rig(requests=100)

    def replace(look: int) -> None:
        rig.pods.members.pop("abcd"[look % 4], None)
        for name, is_candidate in ((f"e{look}", False), (f"f{look}", True)):
            rig.pods.members[name] = FakePod(is_candidate=is_candidate)

    rig.at_look = replace
    assert rig.run(steps=(50,)).promoted
    last = rig.looks[-1]
    assert last.candidate.requests > 4 * 100  # as many as were there at a time


def test_what_somebody_else_changes_ends_the_rollout() -> None:
    def changed(change: Callable[[FakeServices], None]) -> tuple[str, Rig]:
        rig = Rig(requests=1)
        rig.at_look = lambda look: change(rig.services) if look == 1 else None
        return rig.run(steps=(10,)).reason, rig

    other = CANARY.__class__(**{**vars(CANARY), "digest": "4567"})
    assert changed(lambda it: setattr(it, "percent", 30))[0] == "somebody else has changed the share of next"
    assert changed(lambda it: setattr(it, "canary", other))[0] == "somebody else has changed the models of the service"
    assert changed(lambda it: it.rollback("iris"))[0] == "the canary next is gone"
    reason, rig = changed(lambda it: setattr(it, "is_promoted", True))
    assert (reason, rig.services.is_promoted) == ("somebody else has promoted next", True)


def test_changes_are_made_again_where_the_service_changes_meanwhile() -> None:
    rig = Rig()
    rig.services.refusals = [
        Refused("the object has been modified", 409),
        Refused("test failed", 422),
        NoAnswer("away"),
    ]
    assert rig.run().promoted
    assert rig.services.shares == [10, 50]


def test_a_change_that_is_not_allowed_is_not_made_again() -> None:
    rig = Rig()
    rig.services.refusals = [Refused("visitor cannot patch resource", 403)] * 2
    end = rig.run()
    assert end.reason == "visitor cannot patch resource"
    assert {name: str(error) for name, error in end.unset.items()} == {"iris": "visitor cannot patch resource"}
    assert end_of_canary(end, "iris") == (
        "the canary of iris could not be taken back: visitor cannot patch resource; "
        "see: alipes deploy kserve status iris"
    )


def test_a_promotion_whose_answer_is_lost_is_one() -> None:
    rig = Rig()
    promote = rig.services.promote

    def lost(name: str, canary: str | None = None) -> str:
        promote(name, canary)
        raise NoAnswer("connection reset")

    rig.services.promote = lost  # type: ignore[method-assign]
    assert rig.run().promoted


def test_an_api_server_that_is_away_is_waited_for() -> None:
    rig = Rig(requests=200)

    def away(read: int) -> None:
        if 5 <= read < 15:
            raise NoAnswer("the API server does not answer: refused")

    rig.services.before_state = away
    assert rig.run(steps=(50,)).promoted
    assert [look.silent for look in rig.looks].count((API_SERVER,)) >= 5


def test_an_api_server_that_stays_away_ends_the_rollout() -> None:
    rig = Rig(requests=1)
    rig.clock.step_s = 20.0

    def gone(read: int) -> None:
        if read >= 5:
            raise NoAnswer("the API server does not answer: refused")

    rig.services.before_state = gone
    end = rig.run(steps=(10,))
    assert end.reason == "for 300 s the API server does not answer: refused"
    assert list(end.unset) == ["iris"]


def test_a_pod_that_gets_requests_and_stays_silent_takes_the_canary_back() -> None:
    rig = Rig(requests=1)
    rig.at_look = lambda look: setattr(rig.pods.members["d"], "error", NoAnswer("pod d is not available: refused"))
    end = rig.run(steps=(10,))
    assert end.reason == "a server left 3 looks without an answer: pod d is not available: refused"
    assert rig.services.canary is None


def test_servers_that_keep_starting_again_take_the_canary_back() -> None:
    rig = Rig(requests=10)
    rig.pods.members["c"].restarts = 7  # before the rollout
    rig.at_look = lambda look: rig.pods.members["c"].start_again() if look < 3 else None
    assert rig.run(steps=(10,)).reason == "servers of next have ended and started again 3 times"
    stable = Rig(requests=2_000)
    stable.at_look = lambda look: stable.pods.members["a"].start_again() if look < 3 else None
    assert stable.run(steps=(10,)).promoted


def test_a_canary_without_a_server_is_rolled_back_after_a_while() -> None:
    rig = Rig(requests=1)
    rig.clock.step_s = 1.0
    for name in ("c", "d"):
        rig.pods.members[name].is_ready = False
    assert rig.run(steps=(10,)).reason == "next has had no server that is ready for 30 s"


def test_a_rollout_of_a_canary_that_is_stopped_takes_it_back() -> None:
    rig = Rig(requests=1)
    rig.at_look = lambda look: rig.stop.set()
    end = rig.run(steps=(10,))
    assert (end.reason, rig.services.canary) == ("the rollout was stopped", None)


def test_a_broken_off_rollout_of_a_canary_goes_on_at_its_step(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    plan = CanaryPlan("m", "predictor", "next", **{"steps": (10, 50), **QUICK})
    Journal(path).begin(plan)
    Journal(path).note("step", share=50)
    rig = Rig()
    rig.services.percent = 50
    assert rig.run(path).promoted
    assert rig.services.shares == []
    assert {look.share for look in rig.looks} == {50}


def test_a_canary_that_was_being_rolled_back_is_not_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    plan = CanaryPlan("m", "predictor", "next", **{"steps": (10, 50), **QUICK})
    Journal(path).begin(plan)
    Journal(path).note("step", share=10)
    Journal(path).note("taking back", reason="errors: worse by 9.00%")
    rig = Rig()
    end = rig.run(path)
    assert (end.promoted, end.reason, rig.looks, rig.services.canary) == (False, "errors: worse by 9.00%", [], None)


def test_another_canary_of_the_same_name_is_another_rollout(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path).begin(CanaryPlan("m", "predictor", "next", (10,), digest="1"))
    with pytest.raises(ConfigError, match="the rollout of version next of 'm' is not over"):
        Journal(path).begin(CanaryPlan("m", "predictor", "next", (10,), digest="2"))


@pytest.mark.parametrize("steps", [(0, 5), (0.5, 10), (10, 12.5)])
def test_kserve_divides_by_whole_percentages(steps: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="KServe divides requests by whole percentages"):
        CanaryPlan("m", "predictor", "next", steps)


def test_nothing_is_changed_where_a_pod_cannot_be_read() -> None:
    rig = Rig()
    rig.pods.members["a"].error = Refused("visitor cannot get resource pods/proxy", 403)
    with pytest.raises(CloudError, match="the outcomes of pod a cannot be read: visitor cannot get"):
        rig.run()
    assert (rig.services.shares, rig.services.canary) == ([], CANARY)
