"""A folder in which models and tests leave each other notes: how a test knows what a model does, and holds it there."""

from __future__ import annotations

from pathlib import Path

from support.waiting import until


class Notes:
    """The folder; models know it by the variable `NOTES`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a server whose models leave notes."""
        return {"NOTES": str(self.folder)}

    def write(self, name: str, text: str = "") -> None:
        """Leaves a note, whole at once."""
        half = self.folder / f".{name}"
        half.write_text(text)
        half.rename(self.folder / name)

    def remove(self, name: str) -> None:
        """Removes a note."""
        (self.folder / name).unlink()

    def read(self, name: str) -> str:
        """A note, as soon as it is there."""
        until((self.folder / name).exists, f"no note '{name}', only {sorted(self.names())}")
        return (self.folder / name).read_text()

    def names(self) -> set[str]:
        """The notes that are there."""
        return {path.name for path in self.folder.iterdir() if not path.name.startswith(".")}
