"""What alipes makes of calls to PyTriton's functions is what PyTriton makes of them, texts of exceptions included."""

from __future__ import annotations

import pytest
from support.pytriton_facts import facts, recorded, scripts


@pytest.mark.parametrize("name", scripts())
def test_results_and_exceptions_are_those_of_pytriton(name: str) -> None:
    theirs, ours = recorded(name), facts(name)
    assert ours.keys() == theirs.keys()
    assert {fact: ours[fact] for fact in theirs if ours[fact] != theirs[fact]} == {}
