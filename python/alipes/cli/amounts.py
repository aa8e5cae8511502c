"""Amounts as people say them."""

from __future__ import annotations


def span(microseconds: float) -> str:
    """A span of time with the unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            number = microseconds / size
            return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
    return f"{microseconds:.0f} µs"


def count(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
