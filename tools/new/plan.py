"""The edits of a recipe: all places are found before anything is written.

A place is found by syntax. Every file of ours is formatted, so a block ends at the first line after its opening that
has the same indentation and begins with a closing bracket.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TODO = "todo:"
_CLOSING = (")", "]", "}")


class Refused(Exception):
    """A recipe cannot run; nothing was written."""

    exit_code = 1


class MissingPlace(Refused):
    """A file has changed so that a recipe does not find where to insert."""

    exit_code = 2


class Plan:
    """Files to create and to change. Paths are relative to the checkout, or absolute."""

    def __init__(self, root: Path = ROOT) -> None:
        """Takes the checkout."""
        self._root = root
        self._before: dict[str, list[str]] = {}
        self._lines: dict[str, list[str]] = {}
        self._next: list[str] = []

    def text(self, path: str) -> str:
        """A file with the edits so far."""
        return "\n".join(self._open(path))

    def texts(self, pattern: str) -> list[str]:
        """The files that match a pattern, as they are."""
        return [file.read_text(encoding="utf-8") for file in sorted(self._root.glob(pattern))]

    def block(self, path: str, inside: Sequence[str]) -> list[str]:
        """The lines within a block; `insert` says which."""
        start, end = self._block(path, inside)
        return self._open(path)[start:end]

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return (self._root / path).exists()

    def create(self, path: str, text: str) -> None:
        """A new file.

        Raises:
            Refused: If it exists.
        """
        if self.exists(path):
            raise Refused(f"{path} exists already")
        self._before[path] = []
        self._lines[path] = text.split("\n")

    def insert(self, path: str, text: str, *, inside: Sequence[str] = (), before: str = "") -> None:
        """Insert lines at the end of a block, or before a line in it.

        Args:
            path: The file.
            text: The lines, without the indentation of the place; a blank line first where there are two line breaks.
            inside: The opening lines of the block and those around it, outermost first, without indentation.
            before: The line to insert before; the end of the block where there is none.
        """
        lines = self._open(path)
        start, end = self._block(path, inside)
        at = self._find(path, before, start, end) if before else end
        margin = _margin(lines[at]) + ("" if before else "    ")
        lines[at:at] = textwrap.indent(textwrap.dedent(text).rstrip("\n").removeprefix("\n"), margin).split("\n")

    def insert_sorted(self, path: str, line: str, *, like: str, inside: Sequence[str] = ()) -> None:
        """Insert a line into the first run of lines that match a pattern, in the order of the pattern's first group."""
        lines = self._open(path)
        start, end = self._block(path, inside)
        pattern = re.compile(rf"\s*{like}")
        first = next((at for at in range(start, end) if pattern.fullmatch(lines[at])), None)
        own = pattern.fullmatch(line)
        if first is None or own is None:
            raise MissingPlace(f"{path}: no line like '{like}'")
        at = first
        while at < end and (match := pattern.fullmatch(lines[at])) and match[1] < own[1]:
            at += 1
        lines.insert(at, _margin(lines[first]) + line)

    def insert_row(self, path: str, row: str, *, heading: str, before: str = "", after: str = "") -> None:
        """Insert a row into the first table below a heading: at its end, or beside the row that begins with a text."""
        lines = self._open(path)
        start = self._find(path, heading, 0, len(lines))
        first = next((at for at in range(start, len(lines)) if lines[at].startswith("|")), None)
        if first is None:
            raise MissingPlace(f"{path}: no table below '{heading}'")
        end = next(at for at in range(first, len(lines) + 1) if at == len(lines) or not lines[at].startswith("|"))
        if beside := before or after:
            found = [at for at in range(first, end) if lines[at].startswith(beside)]
            if not found:
                raise MissingPlace(f"{path}: no row '{beside}' below '{heading}'")
            end = found[0] if before else found[-1] + 1
        lines.insert(end, row)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace lines that stand once in a file."""
        text = self.text(path)
        if text.count(old) != 1:
            raise MissingPlace(f"{path}: '{old}' stands there {text.count(old)} times, expected once")
        self._lines[path] = text.replace(old, new).split("\n")

    def then(self, command: str) -> None:
        """A command to type when the lines are filled in."""
        self._next.append(command)

    def write(self) -> str:
        """Write everything; gives the report."""
        changed = {path: lines for path, lines in self._lines.items() if lines != self._before[path]}
        report, todo = [], []
        for path, lines in changed.items():
            file = self._root / path
            report.append(f"{'changed' if self._before[path] else 'wrote  '} {path}")
            todo += [f"  {path}:{at + 1}: {lines[at].strip()}" for at in self._added(path) if TODO in lines[at]]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(lines), encoding="utf-8")
        return "\n".join([*report, "", "fill in:", *todo, "", "then:", *(f"  {command}" for command in self._next)])

    def _added(self, path: str) -> list[int]:
        """The new lines of a file, counted from 0."""
        matcher = difflib.SequenceMatcher(None, self._before[path], self._lines[path], autojunk=False)
        return [at for kind, _, _, start, end in matcher.get_opcodes() if kind != "equal" for at in range(start, end)]

    def _open(self, path: str) -> list[str]:
        if path not in self._lines:
            try:
                text = (self._root / path).read_text(encoding="utf-8")
            except FileNotFoundError:
                raise MissingPlace(f"{path}: no such file") from None
            self._before[path] = text.split("\n")
            self._lines[path] = text.split("\n")
        return self._lines[path]

    def _block(self, path: str, inside: Sequence[str]) -> tuple[int, int]:
        """The first line within a block, and the line that closes it."""
        lines = self._open(path)
        start, end = 0, len(lines)
        for opening in inside:
            at = self._find(path, opening, start, end)
            margin = _margin(lines[at])
            for after in range(at + 1, end):
                if _margin(lines[after]) == margin and lines[after].startswith(_CLOSING, len(margin)):
                    start, end = at + 1, after
                    break
            else:
                raise MissingPlace(f"{path}: '{opening}' is not closed")
        return start, end

    def _find(self, path: str, wanted: str, start: int, end: int) -> int:
        lines = self._open(path)
        found = [at for at in range(start, end) if lines[at].strip() == wanted]
        if len(found) != 1:
            raise MissingPlace(f"{path}: the line '{wanted}' stands there {len(found)} times, expected once")
        return found[0]


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
