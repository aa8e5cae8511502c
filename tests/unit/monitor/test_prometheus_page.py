"""Reading what servers tell."""

from __future__ import annotations

import math

import pytest
from alipes.monitor.prometheus import Sample, samples


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('n{model="m",version="1"} 5', Sample("n", {"model": "m", "version": "1"}, 5.0)),
        ('n{version="1",model="m"} 5', Sample("n", {"model": "m", "version": "1"}, 5.0)),
        (
            'n{gpu_uuid="x", model="m" ,version="1",} 5',
            Sample("n", {"model": "m", "version": "1", "gpu_uuid": "x"}, 5.0),
        ),
        ('n{model="m.*[("} 7038.000000', Sample("n", {"model": "m.*[("}, 7038.0)),
        ('n{model="a\\"b\\\\c\\nd"} 1', Sample("n", {"model": 'a"b\\c\nd'}, 1.0)),
        ('n{model="a}b"} 1', Sample("n", {"model": "a}b"}, 1.0)),
        ("n 1.5e3 1700000000000", Sample("n", {}, 1500.0)),
        ("n_total{} +Inf", Sample("n_total", {}, math.inf)),
    ],
)
def test_a_line_is_a_name_labels_in_any_order_and_a_number(line: str, expected: Sample) -> None:
    assert list(samples(line)) == [expected]


@pytest.mark.parametrize(
    "line", ["", "# HELP n words", "# TYPE n counter", "no number", "n{", "{} 1", "\x00", "n 1 2 3"]
)
def test_what_is_no_value_is_passed_over(line: str) -> None:
    assert list(samples(f"a 1\n{line}\nb 2\n")) == [Sample("a", {}, 1.0), Sample("b", {}, 2.0)]
