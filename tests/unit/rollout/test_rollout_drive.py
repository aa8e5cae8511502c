"""A rollout against a server of a few lines: which weights it asks for, how it ends, and how it goes on."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from alipes.cli.rollout import stable_version
from alipes.cli.rollout_options import share_of
from alipes.cli.rollout_view import end_of
from alipes.errors import ConfigError, TransportError
from alipes.rollout import Journal, Look, RolloutPlan, Tolerance, run_rollout, versions
from alipes.rollout.journal import Resumed
from alipes.types import Shadow, TrafficSplit
from support.fake_versions import Versions

QUICK = {"step_s": 0.01, "last_step_s": 0.05, "look_s": 0.001}


def plan(**more: Any) -> RolloutPlan:
    return RolloutPlan("m", 1, 2, **{"steps": (1, 50), **QUICK, **more})


def test_a_good_candidate_goes_through_all_steps() -> None:
    server, looks = Versions(), list[Look]()
    end = run_rollout(server, plan(), watch=looks.append)
    assert (end.promoted, end.reason) == (True, "no comparison found the candidate worse")
    assert server.weights == [{1: 9900, 2: 100}, {1: 5000, 2: 5000}, {}]
    assert [look.share for look in looks] == [1, 50]


def test_a_step_of_nothing_sends_the_candidate_copies() -> None:
    server, looks = Versions(), list[Look]()
    assert run_rollout(server, plan(steps=(0, 50)), watch=looks.append).promoted
    assert server.weights == [{1: 10_000, 2: 0}, {1: 5000, 2: 5000}, {}]
    assert server.shadows == [Shadow(2), None, None]
    assert [look.share for look in looks] == [0, 50]
    worse = Versions(failed=5_000)
    assert not run_rollout(worse, plan(steps=(0, 50))).promoted
    assert worse.weights == [{1: 10_000, 2: 0}, {1: 1}]


def test_a_candidate_that_is_not_the_highest_version_keeps_its_weight() -> None:
    server = Versions()
    server.versions = (1, 2, 3)
    assert run_rollout(server, plan()).promoted
    assert server.weights[-1] == {2: 1}


def test_a_candidate_that_fails_more_is_rolled_back_in_its_first_step() -> None:
    server = Versions(failed=5_000)
    end = run_rollout(server, plan())
    assert not end.promoted
    assert end.reason.startswith("errors: worse by 9."), end.reason
    assert server.weights == [{1: 9900, 2: 100}, {1: 1}]


def test_too_few_requests_are_no_reason_to_promote() -> None:
    server = Versions(requests=10)
    end = run_rollout(server, plan())
    assert (end.promoted, end.reason) == (False, "10 requests of the candidate are too few for a verdict")
    assert server.weights == [{1: 9900, 2: 100}, {1: 5000, 2: 5000}, {1: 1}]


def test_a_rollout_that_is_stopped_or_cannot_begin_rolls_back() -> None:
    stop, server = threading.Event(), Versions()
    stop.set()
    assert run_rollout(server, plan(), stop=stop).reason == "the rollout was stopped"
    assert server.weights[-1] == {1: 1}

    lost = Versions()
    lost.error = TransportError("gone")
    end = run_rollout(lost, plan())
    assert end.reason == "not every server has the weights of 1 %: http://a: gone"
    assert end_of(end, plan()) == (
        "version 1 could not be given all requests again: not every server has the weights of 1 %: http://a: gone; "
        "once http://a can be set: alipes models traffic m 1=1 --url=http://a"
    )


def test_a_full_disk_gives_all_requests_back(tmp_path: Path) -> None:
    server, path = Versions(), tmp_path / "journal.jsonl"

    def fill(_: Look) -> None:
        path.unlink()
        path.symlink_to("/dev/full")

    with pytest.raises(OSError, match="No space left"):
        run_rollout(server, plan(), journal=Journal(path), watch=fill)
    assert server.weights[-1] == {1: 1}


def test_a_stopped_rollout_waits_for_a_server_that_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, server, pauses = threading.Event(), Versions(), list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            server.error = None

    def look(_: Look) -> None:
        server.error = TransportError("gone")
        stop.set()

    monkeypatch.setattr(versions.time, "sleep", pause)
    end = run_rollout(server, plan(look_s=0.5, step_s=10), watch=look, stop=stop)
    assert (end.promoted, end.unset, pauses) == (False, {}, [0.5, 0.5])
    assert server.weights[-1] == {1: 1}


def test_a_rollout_that_was_broken_off_goes_on_at_its_step(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    assert journal.begin(plan()) is None
    journal.note("step", share=50)
    server = Versions()
    server.set_traffic("m", {1: 5000, 2: 5000})
    assert run_rollout(server, plan(), journal=Journal(path)).promoted
    # The weights of the step were in force, with what had been counted.
    assert server.weights == [{1: 5000, 2: 5000}, {}]
    assert json.loads(path.read_text().splitlines()[-1])["event"] == "promoted"
    # It is over, so the next one begins.
    assert Journal(path).begin(plan()) is None


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path).begin(plan())
    with pytest.raises(ConfigError, match="the rollout of version 2 of 'm' is not over"):
        Journal(path).begin(plan(steps=(5,)))
    path.write_text("[1]\n")
    with pytest.raises(ConfigError, match="line 1: this is no journal of a rollout"):
        Journal(path).begin(plan())


@pytest.mark.parametrize("kept", [1, 12, 40])
def test_a_line_that_a_full_disk_has_torn_is_dropped(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.begin(plan())
    journal.note("step", share=1)
    whole = path.read_text()
    journal.note("step", share=50)
    path.write_text(path.read_text()[: len(whole) + kept])
    assert Journal(path).begin(plan()) == Resumed(1)
    assert path.read_text() == whole
    assert run_rollout(Versions(), plan(), journal=Journal(path)).promoted
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()][-1] == "promoted"


NO_JOURNALS = [b"weights", b"\x08\x00\xff", b'{"time": 1, "event": "began"}\nweights', b'{"time": 1}']


@pytest.mark.parametrize("content", NO_JOURNALS)
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="this is no journal of a rollout"):
        Journal(path).begin(plan())
    assert path.read_bytes() == content


@pytest.mark.parametrize("steps", [(), (-1,), (0.001,), (0, 0), (5, 5), (50, 10), (100,)])
def test_steps_ascend_between_nothing_and_all(steps: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="steps must ascend"):
        plan(steps=steps)


def test_a_plan_knows_how_often_outcomes_are_judged() -> None:
    assert plan(step_s=60, last_step_s=600, look_s=5).looks == 132
    with pytest.raises(ConfigError, match="version 1 cannot replace itself"):
        RolloutPlan("m", 1, 1)
    with pytest.raises(ConfigError, match="look_s must be above 0 seconds"):
        plan(look_s=0)


def test_the_version_of_most_weight_is_the_one_that_serves() -> None:
    assert stable_version(TrafficSplit({1: 90, 3: 10}, None, (1, 3)), 3) == 1
    assert stable_version(TrafficSplit({}, None, (1, 2)), 1) == 2
    with pytest.raises(Exception, match="version 2 has them already"):
        stable_version(TrafficSplit({}, None, (1, 2)), 2)
    assert (share_of("--steps", "5%"), share_of("--steps", " 0.5 ")) == (0.05, 0.005)
    with pytest.raises(Exception, match="write --steps in per cent"):
        share_of("--steps", "five")
    assert Tolerance().confidence == 0.95
