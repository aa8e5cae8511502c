"""The options of a command line by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from alipes.compat.perf_analyzer.failures import OptionFailed
from alipes.compat.perf_analyzer.parser import Argument
from alipes.compat.perf_analyzer.values import integer, number

__all__ = ["Words"]

T = TypeVar("T")


class Words:
    """The options of a command line; of one that stands twice, the last counts."""

    def __init__(self, arguments: Sequence[Argument]) -> None:
        """Takes them in their order."""
        self._arguments = arguments

    def all(self, *names: str) -> list[Argument]:
        """Every one of these names."""
        return [argument for argument in self._arguments if argument.option.name in names]

    def last(self, name: str) -> Argument | None:
        """The one that counts."""
        found = self.all(name)
        return found[-1] if found else None

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return bool(self.all(name))

    def text(self, name: str) -> str:
        """Its value; empty without it."""
        argument = self.last(name)
        return "" if argument is None else argument.value

    def read(self, name: str, reader: Callable[[Argument], T], default: T) -> T:
        """Its value as a reader has it."""
        argument = self.last(name)
        return default if argument is None else reader(argument)

    def whole(self, name: str, default: int, least: int, shown: str = "", wanted: str = "") -> int:
        """A whole number that is not below `least`; `shown` and `wanted` are words of the message."""
        argument = self.last(name)
        if argument is None:
            return default
        value = integer(argument)
        if value < least:
            words = wanted or ("> 0." if least == 1 else f">= {least}.")
            raise OptionFailed(f"Failed to parse {shown or '--' + name}. The value must be {words}")
        return value

    def real(self, name: str, default: float, shown: str = "", wanted: str = ">= 0.0.") -> float:
        """A number of 0 or more."""
        argument = self.last(name)
        if argument is None:
            return default
        value = number(argument)
        if value < 0:
            raise OptionFailed(f"Failed to parse {shown or '--' + name}. The value must be {wanted}")
        return value
