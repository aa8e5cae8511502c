"""`ModelRepository`: the models of a server by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from alipes.compat.kserve.model import BaseKServeModel

__all__ = ["MODEL_MOUNT_DIRS", "ModelRepository"]

MODEL_MOUNT_DIRS: Final = "/mnt/models"


class ModelRepository:
    """The models of a server. Classes may replace `load` and `load_model`, which load a model by its name."""

    def __init__(self, models_dir: str = MODEL_MOUNT_DIRS) -> None:
        """Is empty.

        Args:
            models_dir: Folder of the models' files, for classes that load them.
        """
        self.models: dict[str, BaseKServeModel] = {}
        self.models_dir = models_dir

    def load_models(self) -> None:
        """Load a model for each folder."""
        for one in Path(self.models_dir).iterdir():
            if one.is_dir():
                self.load_model(one.name)

    def set_models_dir(self, models_dir: str) -> None:
        """Names another folder of the models' files."""
        self.models_dir = models_dir

    def get_model(self, name: str) -> Any:
        """The model of a name; None where there is none."""
        return self.models.get(name)

    def get_models(self) -> dict[str, BaseKServeModel]:
        """All of them, by name."""
        return self.models

    async def is_model_ready(self, name: str) -> bool:
        """Whether there is a model of the name, and it can answer."""
        model = self.get_model(name)
        return bool(model) and await model.healthy()

    def update(self, model: BaseKServeModel, name: str | None = None) -> None:
        """Add a model, or replace it, under its own name or another."""
        self.models[name or model.name] = model

    def load(self, name: str) -> Any:
        """Loads a model; a class may replace it."""

    def load_model(self, name: str) -> Any:
        """Loads a model; a class may replace it."""

    def unload(self, name: str) -> None:
        """Stop a model and forget it.

        Raises:
            KeyError: If there is none of the name.
        """
        if name not in self.models:
            raise KeyError(f"model with name {name} does not exist")
        model = self.models.pop(name)
        if callable(getattr(model, "stop", None)):
            model.stop()
        if model.engine:
            model.stop_engine()
