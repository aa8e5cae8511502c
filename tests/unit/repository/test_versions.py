"""Which versions a policy serves."""

from __future__ import annotations

import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.repository.versions import (
    All,
    Latest,
    Specific,
    VersionPolicy,
    choose_versions,
    missing_versions,
    policy_of,
)


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        (Latest(), (10,)),
        (Latest(2), (3, 10)),
        (Latest(9), (1, 3, 10)),
        (Latest(0), ()),
        (All(), (1, 3, 10)),
        (Specific((3, 1)), (1, 3)),
        (Specific((3, 4)), (3,)),
        (Specific((4,)), ()),
    ],
)
def test_policy_chooses_among_what_is_there(policy: VersionPolicy, chosen: tuple[int, ...]) -> None:
    assert choose_versions(policy, (10, 1, 3)) == chosen


@pytest.mark.parametrize("policy", [Latest(), All(), Specific((1,))])
def test_nothing_is_chosen_from_nothing(policy: VersionPolicy) -> None:
    assert choose_versions(policy, ()) == ()


def test_only_versions_named_by_number_can_be_missing() -> None:
    assert missing_versions(Specific((4, 1, 2)), (1,)) == (2, 4)
    assert missing_versions(All(), (1,)) == ()


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("", Latest(1)),
        ("version_policy { latest { } }", Latest(0)),
        ("version_policy { }", All()),
        ("version_policy { latest { num_versions: 2 } }", Latest(2)),
        ("version_policy { all { } }", All()),
        ("version_policy { specific { versions: [ 1, 3 ] } }", Specific((1, 3))),
    ],
)
def test_policy_is_read_from_the_configuration(text: str, policy: VersionPolicy) -> None:
    assert policy_of(parse_pbtxt(text)) == policy
