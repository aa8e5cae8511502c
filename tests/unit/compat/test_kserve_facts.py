"""What alipes makes of calls to the KServe SDK's names is what the SDK makes of them, texts of exceptions included."""

from __future__ import annotations

import pytest
from support.kserve_facts import DIFFERENT, facts, recorded, scripts


@pytest.mark.parametrize("name", scripts())
def test_results_and_exceptions_are_those_of_the_sdk(name: str) -> None:
    theirs, ours = recorded(name), facts(name)
    assert ours.keys() == theirs.keys()
    assert {fact for fact in theirs if ours[fact] != theirs[fact]} == DIFFERENT[name]
