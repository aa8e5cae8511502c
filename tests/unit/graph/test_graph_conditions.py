"""Conditions that a person has not closed."""

from __future__ import annotations

import pytest
from alipes.graph.conditions import condition_fault


@pytest.mark.parametrize(
    "path",
    [
        "a.b",
        'predictions.#(label=="dog")',
        '[@this].#(predictions.0=="dog")',
        "{ .input.userId == 1 }",
        'a.#(b=="x)(")#.c|@reverse',
        r"a\(b",
        '@pretty:{"a":1}',
        'say "yes',
    ],
)
def test_a_condition_that_gjson_reads_has_no_fault(path: str) -> None:
    assert condition_fault(path) is None


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("a.#(b==1", "')' is missing at its end"),
        ("[a,b", "']' is missing at its end"),
        ("a)", "')' at 2 closes nothing"),
        ("#(a]", "']' at 4 closes nothing"),
        ('#(a=="b)', "the quote at 6 is not closed"),
        ("{a:[b}", "'}' at 6 closes nothing"),
    ],
)
def test_a_condition_that_is_not_closed_has_a_fault(path: str, fault: str) -> None:
    assert condition_fault(path) == fault
