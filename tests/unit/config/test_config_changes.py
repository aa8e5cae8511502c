"""What of a configuration a loaded version can take over."""

from __future__ import annotations

import pytest
from alipes.config.changes import lasting_part, movable_part
from alipes.config.pbtxt import parse_pbtxt

BEFORE = parse_pbtxt('name: "m" backend: "b" max_batch_size: 4 instance_group { count: 1 }')


@pytest.mark.parametrize("text", ["instance_group { count: 2 }", "", "version_policy { all { } }"])
def test_instances_and_version_policy_can_change_in_place(text: str) -> None:
    after = parse_pbtxt(f'name: "m" backend: "b" max_batch_size: 4 {text}')
    assert lasting_part(after) == lasting_part(BEFORE)
    assert movable_part(after) != movable_part(BEFORE)


@pytest.mark.parametrize("text", ["max_batch_size: 8", 'parameters { key: "a" value: { string_value: "b" } }'])
def test_all_else_cannot(text: str) -> None:
    after = parse_pbtxt(f'name: "m" backend: "b" {text} instance_group {{ count: 1 }}')
    assert lasting_part(after) != lasting_part(BEFORE)
    assert movable_part(after) == movable_part(BEFORE)


@pytest.mark.parametrize("group", ["passive: true", 'rate_limiter { resources { name: "R" count: 1 } }'])
def test_groups_that_are_passive_or_take_resources_cannot(group: str) -> None:
    after = parse_pbtxt(f'name: "m" backend: "b" max_batch_size: 4 instance_group {{ count: 1 {group} }}')
    assert lasting_part(after) != lasting_part(BEFORE)


def test_an_ensemble_takes_nothing_over() -> None:
    before, after = (
        parse_pbtxt(f'name: "e" platform: "ensemble" version_policy {{ latest {{ num_versions: {count} }} }}')
        for count in (1, 2)
    )
    assert lasting_part(before) != lasting_part(after)


def test_the_configuration_itself_is_left_as_it_is() -> None:
    copy = parse_pbtxt('name: "m" backend: "b" max_batch_size: 4 instance_group { count: 1 }')
    lasting_part(copy)
    movable_part(copy)
    assert copy == BEFORE
