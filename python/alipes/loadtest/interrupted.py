"""A load test that somebody ended before its time."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Interrupted"]

Result = TypeVar("Result")


class Interrupted(KeyboardInterrupt, Generic[Result]):
    """Ctrl-C while a load test ran.

    Attributes:
        result: What was measured until then.
    """

    def __init__(self, result: Result) -> None:
        """Takes it."""
        super().__init__("the load test was interrupted")
        self.result = result
