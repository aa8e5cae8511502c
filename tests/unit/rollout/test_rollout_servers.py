"""A rollout over several servers of a few lines: they are judged as one, and none of them is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes.cli.failures import CommandFailed
from alipes.cli.rollout import stable_everywhere
from alipes.cli.rollout_view import end_of, line_of
from alipes.errors import InvalidArgument, NotFound, TransportError
from alipes.rollout import Journal, Look, RolloutPlan, run_rollout
from alipes.types import Shadow, TrafficSplit
from support.fake_versions import Several, Versions

QUICK = {"step_s": 0.01, "last_step_s": 0.05, "look_s": 0.001}
A, B, C = "http://a", "http://b", "http://c"
STEP = {1: 9900, 2: 100}
HALF = {1: 5000, 2: 5000}


def plan(**more: Any) -> RolloutPlan:
    return RolloutPlan("m", 1, 2, **{"steps": (1, 50), **QUICK, **more})


def three(**more: Versions) -> Several:
    members = {name: more.get(name, Versions()) for name in "abc"}
    return Several({f"http://{name}": one for name, one in members.items()})


def at_look(number: int, action: Callable[[], None]) -> Callable[[int], None]:
    """What does something at one of the looks, counted from 0."""
    return lambda look: action() if look == number else None


def test_all_servers_have_the_weights_of_each_step() -> None:
    servers, looks = three(), list[Look]()
    end = run_rollout(servers, plan(), watch=looks.append)
    assert (end.promoted, end.servers, end.unset) == (True, (A, B, C), {})
    assert [one.weights for one in servers.members.values()] == [[STEP, HALF, {}]] * 3
    assert looks[0].candidate.requests == 150_000
    assert end_of(end, plan()) == (
        "version 2 has all requests now at 3 servers: no comparison found the candidate worse"
    )


def test_the_servers_are_judged_as_one() -> None:
    # Too few failures for a verdict at one server, and enough at three.
    few = {"failed": 20, "requests": 1000}
    alone = run_rollout(Several({A: Versions(**few)}), plan(steps=(50,)))
    assert alone.reason == "1000 requests of the candidate are too few for a verdict"
    servers = Several({A: Versions(**few), B: Versions(**few), C: Versions(**few)})
    end = run_rollout(servers, plan(steps=(50,)))
    assert end.reason.startswith("errors: worse by "), end.reason
    assert end_of(end, plan()).startswith("version 1 has all requests again at 3 servers: errors: worse by ")


def test_each_server_gets_the_weights_that_its_versions_need() -> None:
    servers = three()
    servers.members[B].versions = (1, 2, 3)
    assert run_rollout(servers, plan()).promoted
    assert [one.weights[-1] for one in servers.members.values()] == [{}, {2: 1}, {}]


def test_all_are_rolled_back_where_one_cannot_be_set() -> None:
    servers = three()
    servers.members[B].error = InvalidArgument("version 2 of 'm' does not serve; those that do: 1")
    end = run_rollout(servers, plan())
    assert end.reason == (
        "not every server has the weights of 1 %: http://b: version 2 of 'm' does not serve; those that do: 1"
    )
    assert [one.weights for one in servers.members.values()] == [[STEP, {1: 1}], [], [STEP, {1: 1}]]
    assert list(end.unset) == [B]


def test_a_server_that_dies_takes_the_candidate_back_at_the_others() -> None:
    servers, looks = three(), list[Look]()
    gone = TransportError("cannot connect to b: Connection refused")
    dying = servers.members[B]
    dying.before_read = at_look(1, lambda: setattr(dying, "error", gone))
    end = run_rollout(servers, plan(), watch=looks.append)
    text = "a server left 3 looks without an answer: cannot connect to b: Connection refused"
    assert end.reason == text
    assert [one.weights[-1] for one in servers.members.values()] == [{1: 1}, HALF, {1: 1}]
    assert end_of(end, plan()) == (
        f"version 1 has all requests again at 2 of 3 servers: {text}; "
        "once http://b can be set: alipes models traffic m 1=1 --url=http://b"
    )
    # The others are judged meanwhile, and nothing is promoted on the word of a part.
    assert [look.silent for look in looks[1:]] == [(B,)] * 3
    assert looks[1].candidate.requests == 100_000
    assert line_of(looks[1]).endswith("; good; without an answer of http://b")


def test_a_server_that_misses_a_look_takes_nothing_back() -> None:
    servers = three()
    slow = servers.members[C]

    def answer(look: int) -> None:
        slow.error = TransportError("timed out") if look == 0 else None

    slow.before_read = answer
    assert run_rollout(servers, plan()).promoted
    assert slow.weights == [STEP, HALF, {}]


def test_a_server_that_starts_anew_takes_the_candidate_back() -> None:
    servers = three()
    anew = servers.members[C]
    anew.before_read = at_look(0, anew.forget)
    end = run_rollout(servers, plan())
    assert end.reason == "the weights are gone, as after a start of the server at http://c"
    assert [one.weights[-1] for one in servers.members.values()] == [{1: 1}] * 3


def test_weights_that_somebody_else_sets_end_the_rollout() -> None:
    servers = three()
    other = servers.members[A]
    other.before_read = at_look(0, lambda: other.weights.append({1: 1, 2: 1}))
    other.shadows += [None, None]
    assert run_rollout(servers, plan()).reason == "somebody else has changed the weights at http://a"


def test_a_server_whose_candidate_leaves_is_named() -> None:
    servers = three()
    servers.members[B].versions = (1,)
    assert run_rollout(servers, plan()).reason == "version 2 does not serve any more at http://b"


def test_an_answer_that_refuses_ends_the_rollout_at_once() -> None:
    servers = three()
    refuses = servers.members[B]
    refuses.before_read = at_look(0, lambda: setattr(refuses, "error", NotFound("'m' is not found")))
    assert run_rollout(servers, plan()).reason == "http://b: 'm' is not found"


def test_a_server_that_is_added_behind_a_name_gets_the_weights() -> None:
    servers, added = three(), Versions()
    servers.members[A].before_read = at_look(0, lambda: servers.members.update({"http://d": added}))
    assert run_rollout(servers, plan(steps=(1, 25, 50), step_s=5, last_step_s=5)).promoted
    assert added.weights[-3:] == [{1: 7500, 2: 2500}, HALF, {}]


def test_a_server_that_leaves_its_name_ends_nothing() -> None:
    servers = three()
    servers.members[A].before_read = at_look(0, lambda: servers.members.pop(C) and None)
    end = run_rollout(servers, plan())
    assert (end.promoted, end.servers) == (True, (A, B))


def test_the_journal_names_the_servers(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    servers = three()
    servers.members[B].before_read = at_look(0, lambda: setattr(servers.members[B], "error", TransportError("gone")))
    run_rollout(servers, plan(), journal=Journal(path))
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert events[0]["servers"] == [A, B, C]
    assert events[1]["servers"] == [A, B, C]
    assert [event["silent"] for event in events if event["event"] == "look"] == [{B: "gone"}] * 3
    assert events[-1]["unset"] == {B: "gone"}


def test_a_rollout_goes_on_where_all_servers_have_its_weights(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.begin(plan(), (A, B, C))
    journal.note("step", share=50)
    servers = three()
    for one in servers.members.values():
        one.set_traffic("m", HALF)
    assert run_rollout(servers, plan(), journal=journal).promoted
    assert servers.members[B].weights == [HALF, {}]
    # One of them has lost the weights meanwhile: all are set, so that all count from the same moment.
    journal.begin(plan(), (A, B, C))
    journal.note("step", share=50)
    servers = three()
    for name in (A, B):
        servers.members[name].set_traffic("m", HALF)
    assert run_rollout(servers, plan(), journal=journal).promoted
    assert servers.members[A].weights == [HALF, HALF, {}]


def test_the_version_that_serves_is_the_same_at_all_servers() -> None:
    one, two = TrafficSplit({1: 1}, None, (1, 2)), TrafficSplit({3: 1}, None, (1, 2, 3), Shadow(2))
    assert stable_everywhere({A: one, B: one}, 2) == 1
    with pytest.raises(CommandFailed, match="it is not the same everywhere: 1 at http://a, 3 at http://b"):
        stable_everywhere({A: one, B: two}, 2)
