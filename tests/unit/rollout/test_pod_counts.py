"""Outcomes of pods that come, go and start again: each request counts once, for the group of its pod."""

from __future__ import annotations

import pytest
from alipes.cloud.kubernetes.refusals import NoAnswer, Refused
from alipes.errors import CloudError
from alipes.rollout.pod_counts import PodCounts
from support.fake_pods import FakePod, FakePods

OURS = {"1": 1_000_000}


def counted(counts: PodCounts, pods: FakePods) -> tuple[int, int, dict[str, str]]:
    stable, candidate, silent = counts.read(pods.listed())
    return stable.requests, candidate.requests, {name: str(error) for name, error in silent.items()}


def begun(pods: FakePods) -> PodCounts:
    counts = PodCounts(pods.reach, "m")
    counts.begin(pods.listed())
    return counts


def two_groups() -> FakePods:
    return FakePods(a=FakePod(), b=FakePod(), c=FakePod(is_candidate=True))


def test_pods_of_each_group_are_added_up() -> None:
    pods = two_groups()
    counts = begun(pods)
    for name, requests, failed in (("a", 10, 1), ("b", 20, 0), ("c", 5, 2)):
        pods.members[name].serve(requests, failed)
    stable, candidate, silent = counts.read(pods.listed())
    assert (stable.answered, stable.failed, stable.latency.at(3)) == (29, 1, 100)
    assert (candidate.answered, candidate.failed, silent) == (3, 2, {})


def test_outcomes_of_a_pod_that_goes_stay_and_count_once() -> None:
    pods = two_groups()
    counts = begun(pods)
    pods.members["b"].serve(7)
    assert counted(counts, pods) == (7, 0, {})
    pods.members.pop("b")
    pods.members["a"].serve(3)
    assert [counted(counts, pods) for _ in range(2)] == [(10, 0, {})] * 2


def test_a_pod_that_goes_between_the_list_and_the_call_is_not_silent() -> None:
    pods = two_groups()
    counts = begun(pods)
    listed = pods.listed()
    pods.members.pop("b")
    assert counts.read(listed)[2] == {}


def test_a_pod_that_is_added_counts_from_the_first_look_at_it() -> None:
    pods = two_groups()
    counts = begun(pods)
    pods.members["d"] = FakePod(is_candidate=True)
    pods.members["d"].serve(9)
    assert counted(counts, pods) == (0, 0, {})
    pods.members["d"].serve(4)
    assert counted(counts, pods) == (0, 4, {})


def test_a_server_that_starts_again_goes_on_as_the_same_version() -> None:
    pods = two_groups()
    counts = begun(pods)
    pods.members["c"].serve(6, 1)
    assert counted(counts, pods) == (0, 6, {})
    pods.members["c"].start_again()
    assert counted(counts, pods) == (0, 6, {})
    pods.members["c"].serve(8)
    assert counted(counts, pods) == (0, 14, {})


def test_counts_that_somebody_else_resets_are_added_to() -> None:
    pods = two_groups()
    counts = begun(pods)
    pods.members["a"].serve(50)
    assert counted(counts, pods) == (50, 0, {})
    pods.members["a"].answered = 2
    assert counted(counts, pods) == (52, 0, {})


def test_a_step_counts_from_nothing() -> None:
    pods = two_groups()
    counts = begun(pods)
    pods.members["a"].serve(5)
    counts.read(pods.listed())
    counts.begin(pods.listed())
    assert counted(counts, pods) == (0, 0, {})


def test_a_pod_that_could_not_be_set_counts_nothing_of_the_step_before() -> None:
    pods = two_groups()
    counts = begun(pods)
    late = pods.members["a"]
    late.serve(100)
    late.error = NoAnswer("pod a is not available")
    counts.begin(pods.listed())
    assert counted(counts, pods) == (0, 0, {"a": "pod a is not available"})
    late.error = None
    assert counted(counts, pods) == (0, 0, {})
    late.serve(3)
    assert counted(counts, pods) == (3, 0, {})


def test_pods_that_get_no_requests_may_be_silent() -> None:
    pods = two_groups()
    counts = begun(pods)
    leaving = pods.members["b"]
    leaving.is_ready, leaving.error = False, NoAnswer("pod b is not available")
    assert counted(counts, pods) == (0, 0, {})
    counts.check(pods.listed())


def test_a_pod_on_its_way_out_is_read_while_it_answers() -> None:
    pods = two_groups()
    counts = begun(pods)
    pods.members["b"].is_ready = False
    pods.members["b"].serve(11)
    assert counted(counts, pods) == (11, 0, {})


def test_a_refusal_of_a_server_is_named_before_anything_begins() -> None:
    pods = two_groups()
    pods.members["c"].error = Refused("'m' is not found", 404)
    with pytest.raises(CloudError, match="the outcomes of pod c cannot be read: 'm' is not found"):
        PodCounts(pods.reach, "m").check(pods.listed())


def test_an_answer_of_another_server_is_an_error() -> None:
    counts = PodCounts(lambda pod, path, body: b"<html>", "m")
    with pytest.raises(CloudError, match="pod a does not answer as a server of alipes does"):
        counts.check(two_groups().listed())


def test_only_weights_that_count_alone_are_removed() -> None:
    own = {"1": 5}
    pods = FakePods(a=FakePod(), b=FakePod(weights=own))
    counts = begun(pods)
    assert [one.weights for one in pods.members.values()] == [OURS, own]
    counts.end(pods.listed())
    assert [one.weights for one in pods.members.values()] == [{}, own]
