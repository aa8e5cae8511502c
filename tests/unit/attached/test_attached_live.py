"""An object as an instance: initialized for its first use and finalized after its last."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.attached.live import LiveInstance


class Noted:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.fails = False

    def initialize(self, args: dict[str, str]) -> None:
        self.notes.append(f"initialize {args['model_name']}")
        if self.fails:
            raise OSError("no device")

    def execute(self, requests: list[Any]) -> list[Any]:
        self.notes.append("execute")
        return requests

    def finalize(self) -> None:
        self.notes.append("finalize")

    def is_ready(self) -> bool:
        return False


def test_two_uses_initialize_and_finalize_once() -> None:
    noted = Noted()
    live = LiveInstance(noted, "m", 0)
    live.initialize({"model_name": "first"})
    live.initialize({"model_name": "second"})
    live.finalize()
    assert live.execute([1]) == [1]
    live.finalize()
    live.initialize({"model_name": "third"})
    assert noted.notes == ["initialize first", "execute", "finalize", "initialize third"]
    assert live.is_ready() is False


def test_an_object_whose_initialize_raises_is_not_in_use() -> None:
    noted = Noted()
    live = LiveInstance(noted, "m", 0)
    noted.fails = True
    with pytest.raises(OSError, match="no device"):
        live.initialize({"model_name": "first"})
    noted.fails = False
    live.initialize({"model_name": "second"})
    live.finalize()
    assert noted.notes == ["initialize first", "initialize second", "finalize"]


def test_a_function_has_nothing_to_initialize_or_to_ask() -> None:
    live = LiveInstance(lambda requests: requests, "m", 0)
    live.initialize({})
    assert live.execute([2]) == [2]
    live.finalize()
    assert not hasattr(live, "is_ready")
