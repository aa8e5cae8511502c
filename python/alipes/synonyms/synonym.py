"""`Synonym`: words that mean one thing, and what to type for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Place", "Synonym"]

Place: TypeAlias = Literal[
    "alipes",
    "alipes ask",
    "alipes batch run",
    "alipes client",
    "alipes config",
    "alipes deploy",
    "alipes deploy apply",
    "alipes deploy image",
    "alipes deploy systemd",
    "alipes help",
    "alipes infer",
    "alipes models",
    "alipes repo",
    "alipes rollout",
    "alipes serve",
    "alipes stop",
    "alipes loadtest",
    "clients",
    "deployments",
    "alipes.serve",
    "@alipes.model",
    "import alipes",
    "alipes.Client",
    "client.",
    "server.",
]
"""Where something was typed.

Behind a command; `clients` are all commands with `--url`, `deployments` all with `--set`. Then in Python: keywords of
two calls, names of the package, keywords of a client and its methods, attributes
of a running server.
"""


@dataclass(frozen=True, slots=True)
class Synonym:
    """Words that mean one thing.

    Attributes:
        words: What is typed, without dashes in front, separated by spaces; `_` and `-` are the same.
        meant: What to type in its place, asked as "did you mean ...?".
        says: A sentence, where no single word does.
    """

    words: str
    meant: str = ""
    says: str = ""

    @property
    def hint(self) -> str:
        """What a person reads."""
        return f"did you mean {self.meant}?" if self.meant else self.says
