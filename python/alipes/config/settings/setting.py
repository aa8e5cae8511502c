"""One row of the table of settings."""

from __future__ import annotations

from dataclasses import dataclass

from alipes.config.flags import Kind, Status, Value

__all__ = ["Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: a key that a flag takes.

    Attributes:
        flag: The flag that takes it.
        scope: The backend that it belongs to; empty for all of them and for metrics.
        key: The key.
        kind: How its value is read.
        default: Its value if none is set.
        help: What it does, in one line.
        option: Where the value lands in `ServerOptions`, as a dotted path; empty for what does not work.
        ignored: The notice, where the setting does nothing here.
        high: Largest integer allowed.
        low: Smallest integer allowed.
        choices: The words that a `choice` takes.
    """

    flag: str
    scope: str
    key: str
    kind: Kind
    default: Value
    help: str
    option: str = ""
    ignored: str = ""
    high: int = 2**31 - 1
    low: int = 0
    choices: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Whether it works or is ignored with a notice."""
        return "ignored" if self.ignored else "works"
