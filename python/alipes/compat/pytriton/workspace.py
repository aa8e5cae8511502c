"""The folder of a server of PyTriton, for the time that it runs."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path

from alipes.compat.pytriton import constants

__all__ = ["CleanupWarning", "Workspace"]


class CleanupWarning(UserWarning):
    """A folder could not be removed."""


class Workspace:
    """A folder of its own, which goes with `clean`. Nothing of alipes needs it; scripts may put files there."""

    def __init__(self, workspace_path: str | Path | None = None) -> None:
        """Makes the folder.

        Args:
            workspace_path: Where; in PyTriton's home by default.

        Raises:
            FileExistsError: If it is there already.
        """
        if workspace_path is None:
            constants.PYTRITON_HOME.mkdir(parents=True, exist_ok=True)
            self._path = Path(tempfile.mkdtemp(dir=constants.PYTRITON_HOME, prefix="workspace_")).resolve()
        else:
            self._path = Path(workspace_path).resolve()
            self._path.mkdir(parents=True)
        self.model_store_path = self._path / "model-store"
        self.model_store_path.mkdir()

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

    def exists(self) -> bool:
        """Whether the folder is there."""
        return self._path.exists()

    def is_empty(self) -> bool:
        """Whether nothing is in the folder, hidden files apart."""
        found = (file.relative_to(self._path) for file in self._path.rglob("*"))
        return all(file.parts[0].startswith(".") for file in found)

    def clean(self) -> None:
        """Remove the folder with all that is in it.

        Warns:
            CleanupWarning: If it cannot be removed.
        """
        try:
            if self._path.exists():
                shutil.rmtree(self._path)
        except OSError as error:
            warnings.warn(f"Could not clean workspace {self._path}. {error}", CleanupWarning, stacklevel=2)
