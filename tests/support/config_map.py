"""KServe's list of models in a volume, as Kubernetes replaces it: the file is a link through `..data`."""

from __future__ import annotations

import json
from pathlib import Path


class ConfigMap:
    """A volume of a config map with `models.json`.

    Attributes:
        folder: Where it is mounted.
        file: The list in it.
    """

    def __init__(self, folder: Path) -> None:
        """Makes the folder; there is no list yet."""
        self.folder = folder
        self._number = 0
        folder.mkdir()
        self.file = folder / "models.json"
        self.file.symlink_to("..data/models.json")

    def write(self, *models: tuple[str, Path | str]) -> None:
        """Replaces the list at once: names, each with where its model lies, a folder of this machine or an address."""
        self._number += 1
        made = self.folder / f"..{self._number}"
        made.mkdir()
        (made / "models.json").write_text(json.dumps([_entry(name, place) for name, place in models]))
        draft = self.folder / "..data_tmp"
        draft.symlink_to(made.name)
        draft.replace(self.folder / "..data")


def _entry(name: str, place: Path | str) -> dict[str, object]:
    address = f"file://{place}" if isinstance(place, Path) else place
    return {"modelName": name, "modelSpec": {"storageUri": address, "framework": "onnx", "memory": "1Gi"}}
