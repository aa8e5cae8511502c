"""One row of the table of flags, and the words that several rows share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["MAX_BYTES", "MAX_INT", "MAX_PORT", "NO_GPU", "UNIX", "Flag", "Kind", "Status", "Value"]

Kind = Literal["bool", "int", "level", "seconds", "str", "choice", "list"]
"""How a value is read: `level` is an integer that also takes true and false, `list` may be given several times."""

Status = Literal["works", "ignored", "refused"]
"""`ignored` gives one notice where the flag is given; `refused` ends the start unless the value is the default."""

Value = bool | int | float | str | tuple[str, ...] | None
"""A parsed value; None where the flag has no default and was not given."""

MAX_PORT: Final = 65535
MAX_INT: Final = 2**31 - 1
MAX_BYTES: Final = 2**63 - 1

NO_GPU: Final = "the engines manage the memory of GPUs"
UNIX: Final = "`unix:<path>` is a Unix socket"


@dataclass(frozen=True, slots=True)
class Flag:
    """One row of the table.

    Attributes:
        name: The flag without its dashes.
        kind: How its value is read.
        default: Its value if none is set.
        help: What it does, in one line.
        option: Where the value lands in `ServerOptions`, as a dotted path; empty for what does not work, and for flags
            that are taken apart further.
        ignored: The notice, where the flag does nothing here.
        refused: The reason, where only the default is accepted.
        alias: The flag of which this one is another name.
        choices: The words that a `choice` takes.
        low: Smallest integer allowed.
        high: Largest integer allowed.
        group: Heading under which the usage and the reference page show it.
        common: Whether `alipes serve --help` shows it: the flags that most people use.
        short: Its letter, for `-v`; empty for none.
        path: What it names, where that is a file or a folder: shells complete it, and in a configuration file it is
            relative to that file.
    """

    name: str
    kind: Kind
    default: Value
    help: str
    option: str = ""
    ignored: str = ""
    refused: str = ""
    alias: str = ""
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = MAX_INT
    group: str = ""
    common: bool = False
    short: str = ""
    path: Literal["", "file", "folder"] = ""

    @property
    def status(self) -> Status:
        """Whether it works, is ignored with a notice, or is refused by name."""
        return "ignored" if self.ignored else "refused" if self.refused else "works"

    @property
    def note(self) -> str:
        """Why a flag does not work; empty where it does."""
        return self.ignored or self.refused
