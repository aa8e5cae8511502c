"""How a table of another toolkit's names is written: one row a module, each name with where it is at home here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Absent", "Row", "homes", "without"]


@dataclass(frozen=True, slots=True)
class Absent:
    """Names that can be imported and not used.

    Attributes:
        names: They; any other public name of the module is answered to likewise.
        reason: Why nothing is behind them, and what to do instead.
    """

    names: tuple[str, ...]
    reason: str


Row: TypeAlias = Mapping[str, str | Absent] | Absent


def homes(module: str, *names: str, **renamed: str) -> dict[str, str | Absent]:
    """The names of a row, from one module here; `theirs="ours"` where they differ."""
    same: dict[str, str | Absent] = {name: f"alipes.{module}:{name}" for name in names}
    return same | {theirs: f"alipes.{module}:{ours}" for theirs, ours in renamed.items()}


def without(reason: str, *names: str) -> dict[str, str | Absent]:
    """Names in a row that nothing is behind."""
    return dict.fromkeys(names, Absent((), reason))
