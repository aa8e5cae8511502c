"""The repository as scripts of hermes know it."""

from __future__ import annotations

from alipes.errors import RepositoryUseError
from alipes.repository import model_repository
from alipes.repository.model import Model
from alipes.repository.platform import Platform

__all__ = ["ModelRepository"]


class ModelRepository(model_repository.ModelRepository):
    """A repository whose `add` refuses a name that is taken and makes the folder at once."""

    def add(
        self, name: str, platform: Platform | str, force: bool = False, *, max_batch_size: int | None = None
    ) -> Model:
        """Add a model.

        Args:
            name: Its name, which is that of its folder.
            platform: What it will be exported as.
            force: Whether to take `name_0`, `name_1` and so on where the name is taken.
            max_batch_size: Rows that may run together.

        Raises:
            RepositoryUseError: If the name is taken.
        """
        if name in self.models and not force:
            raise RepositoryUseError(f"Model {name} already exists in {self.fs}", model=name)
        model = super().add(name, platform, force, max_batch_size=max_batch_size)
        self.fs.soft_makedirs(model.name)
        return model
