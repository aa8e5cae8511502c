"""What was measured, in whatever form it is wanted: tables, a picture, a page, files."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from alipes.loadtest.save import check_path
from alipes.tables import frame_of, to_csv, write_parquet

__all__ = ["Rows", "Shown"]

Rows = Callable[[], list[dict[str, Any]]]
"""What makes a table: one dictionary for each of its rows."""


class Shown(ABC):
    """What a measurement showed."""

    _title: ClassVar[str]
    """Of pages whose writer names none."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The figures."""

    @abstractmethod
    def _tables(self) -> dict[str, Rows]:
        """Its tables by their names, that of the figures first."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON; what is not known is `None`."""

    @abstractmethod
    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A figure of matplotlib.

        Args:
            path: A file for the picture, in the format that its name says.

        Raises:
            Unsupported: If matplotlib is not installed.
        """

    @abstractmethod
    def _page(self, title: str) -> str:
        """The page with this title."""

    def to_pandas(self, of: str | None = None) -> Any:
        """A `pandas.DataFrame` of one of its tables.

        A report has its `levels`, the default, their `windows`, and `shares` where several kinds of requests were sent;
        a comparison its `ratios`, the default, and the `rounds` of both sides.

        Raises:
            ConfigError: If there is no such table.
            Unsupported: If pandas is not installed.
        """
        tables = self._tables()
        return frame_of(tables, of or next(iter(tables)))

    def to_html(self, title: str | None = None) -> str:
        """A page that needs no other file.

        Raises:
            Unsupported: If matplotlib is not installed.
        """
        return self._page(title or self._title)

    def save(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Writes the results: `.csv`, `.parquet`, `.json`, `.html`, `.png`, `.svg` or `.pdf`, as the name ends.

        Raises:
            ConfigError: If the name ends otherwise, or its folder is not there.
            Unsupported: If what writes it is not installed.
        """
        file = check_path(path)
        match file.suffix:
            case ".csv":
                file.write_text(to_csv(self.rows()), encoding="utf-8")
            case ".parquet":
                write_parquet(self.rows(), file)
            case ".json":
                file.write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
            case ".html":
                file.write_text(self.to_html(title), encoding="utf-8")
            case _:
                self.plot(file)
