"""What every kind of file can do: be cut into parts, be read part by part, be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

__all__ = ["WHOLE", "Array", "Block", "FileFormat", "Part", "Wanted", "even_parts"]

Array: TypeAlias = np.ndarray[Any, Any]
Part: TypeAlias = tuple[int, int]
"""From where to where a file is read, in the steps of its kind: rows, or bytes of lines."""

WHOLE: Final[Part] = (0, -1)
"""The part that is the file."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is read of a file.

    Attributes:
        ranks: By input of the model: the axes that an array of rows has.
        required: Inputs that cannot be left out.
    """

    ranks: Mapping[str, int]
    required: frozenset[str]

    @property
    def only(self) -> str:
        """The one input that values without a name are for.

        Raises:
            ValueError: If there are several.
        """
        names = sorted(self.required or self.ranks)
        if len(names) == 1:
            return names[0]
        raise ValueError(f"its values have no names, and the model takes {', '.join(names)}")

    def among(self, names: Sequence[str]) -> list[str]:
        """The inputs that a file has.

        Raises:
            ValueError: If one is missing.
        """
        found = [name for name in self.ranks if name in names]
        if missing := sorted(self.required - set(found)):
            held = ", ".join(sorted(names)) or "nothing"
            raise ValueError(f"the model takes {', '.join(missing)}, and it has {held}")
        return found


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a file.

    Attributes:
        arrays: By input.
        rows: How many rows these are; `None` where an array may be one row without the axis of rows.
        broken: In the place of arrays: why a row cannot be read.
    """

    arrays: Mapping[str, Array]
    rows: int | None = None
    broken: str = ""


class FileFormat(Protocol):
    """A kind of file."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The ends of names."""

    @property
    def counts_rows(self) -> bool:
        """Whether parts are counted in rows."""

    def parts(self, path: Path, unit_bytes: int, wanted: Wanted) -> list[Part]:
        """How a large file is divided, so that a part has about so many bytes; `[WHOLE]` where that is not possible."""

    def read(self, path: Path, part: Part, wanted: Wanted) -> Iterator[Block]:
        """The rows of a part.

        Raises:
            Exception: Whatever its library raises about a file that is none.
        """

    def write(self, path: Path, columns: Mapping[str, Array]) -> None:
        """Writes rows, an array by name."""


def even_parts(rows: int, total_bytes: int, unit_bytes: int) -> list[Part]:
    """Rows in parts of about so many bytes, whose sizes differ by one row at most."""
    count = max(1, min(rows, -(-total_bytes // unit_bytes)))
    edges = [rows * number // count for number in range(count + 1)]
    return list(pairwise(edges))
