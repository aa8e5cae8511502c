"""Which files of a store are wanted, by the variables that KServe's storage initializer reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

__all__ = ["ALLOW", "EVERYTHING", "IGNORE", "Patterns", "read_patterns"]

ALLOW: Final = "STORAGE_ALLOW_PATTERNS"
IGNORE: Final = "STORAGE_IGNORE_PATTERNS"


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns of paths within a store. A star stands for any text, slashes included.

    Attributes:
        allowed: A file has to match one of these; any may come where there are none.
        ignored: A file may match none of these.
    """

    allowed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether a file could be left out."""
        return bool(self.allowed or self.ignored)

    def admit(self, path: str) -> bool:
        """Whether a file is wanted, by its path within the store."""
        if self.allowed and not any(fnmatchcase(path, pattern) for pattern in self.allowed):
            return False
        return not any(fnmatchcase(path, pattern) for pattern in self.ignored)


EVERYTHING: Final = Patterns()


def read_patterns(environ: Mapping[str, str]) -> Patterns:
    """The patterns of an environment. Source: kserve_storage 0.21, `_parse_patterns_from_env`."""
    return Patterns(_patterns(environ.get(ALLOW, "")), _patterns(environ.get(IGNORE, "")))


def _patterns(text: str) -> tuple[str, ...]:
    """The patterns of a variable: a JSON array, or texts between commas."""
    try:
        value = json.loads(text)
        parts = [str(part) for part in value] if isinstance(value, list) else [str(value)]
    except (ValueError, RecursionError):
        parts = text.split(",")
    return tuple(_whole_folder(part.strip()) for part in parts if part.strip())


def _whole_folder(pattern: str) -> str:
    """A folder stands for all in it, as the Hub's client has it."""
    return f"{pattern}*" if pattern.endswith("/") else pattern
