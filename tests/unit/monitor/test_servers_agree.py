"""Several servers are watched as one where they have the same models in the same versions."""

from __future__ import annotations

import pytest
from alipes.errors import MonitorError
from alipes.monitor.servers import agreed


def test_servers_agree_whatever_the_order_they_tell_their_models_in() -> None:
    assert agreed({"a": [("m", 1), ("n", 2)]}) == [("m", 1), ("n", 2)]
    assert agreed({"a": [("m", 1), ("n", 2)], "b": [("n", 2), ("m", 1)]}) == [("m", 1), ("n", 2)]


@pytest.mark.parametrize(
    ("other", "answers"),
    [
        ([("m", 1)], "m version 1"),
        ([("m", 1), ("n", 3)], "m version 1, n version 3"),
        ([("m", 1), ("n", 2), ("o", 10)], "m version 1, n version 2, o version 10"),
        ([], "nothing"),
    ],
)
def test_servers_with_different_models_are_a_value_error(other: list[tuple[str, int]], answers: str) -> None:
    found = {"a": [("n", 2), ("m", 1)], "c": [("n", 2), ("m", 1)], "b": other}
    with pytest.raises(MonitorError, match=f"a has m version 1, n version 2, b has {answers}$") as caught:
        agreed(found)
    assert isinstance(caught.value, ValueError)
