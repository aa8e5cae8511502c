"""How many of the rate limiter's resources there are, and which instances ask for more."""

from __future__ import annotations

import pytest
from alipes.config.load import parse_flags
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.validate.instance_groups import check_resources
from alipes.errors import ConfigError


@pytest.mark.parametrize(
    ("flags", "limited", "more"),
    [
        ([], None, ""),
        (["R:2"], None, ""),
        (["R:1"], 1, ""),
        # Of several numbers the largest counts.
        (["R:1", "R:2:0"], None, ""),
        (["R:3", "R:1:0"], None, ""),
        # There is one device, with the number 0.
        (["R:1", "R:9:1"], 1, ""),
        (["R:9:10"], 0, ""),
        (["R:9:10"], None, "global: true"),
        # Once anything has a limit, there is nothing of what has none.
        (["other:9"], 0, ""),
        (["other:9"], 0, "global: true"),
    ],
)
def test_an_instance_takes_no_more_than_there_is(flags: list[str], limited: int | None, more: str) -> None:
    limits = [f"--rate-limit-resource={flag}" for flag in flags]
    options = parse_flags(["models", "--rate-limit=execution_count", *limits], {}).model
    resources = f'resources {{ name: "R" count: 1 {more} }} resources {{ name: "R" count: 2 {more} }}'
    config = parse_pbtxt(f'name: "m" instance_group {{ rate_limiter {{ {resources} }} }}')
    if limited is None:
        return check_resources(config, options)
    with pytest.raises(ConfigError) as caught:
        check_resources(config, options)
    expected = (
        f'Resource count for "R" is limited to {limited} which will prevent scheduling of one or more model instances, '
        "the minimum required count is 2"
    )
    assert str(caught.value) == expected


def test_the_data_plane_knows_what_has_a_limit() -> None:
    flags = ["A:1", "A:2:0", "B:3:7", "C:0"]
    options = parse_flags(["models", *(f"--rate-limit-resource={flag}" for flag in flags)], {}).model
    assert options.limits() == {"A": 2, "B": 3, "C": 0}
