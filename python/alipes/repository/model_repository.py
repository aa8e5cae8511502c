"""A model repository that can be written to: its models, by name."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from alipes.config.named import Named
from alipes.config.nearest import nearest_first
from alipes.config.pbtxt import parse_pbtxt
from alipes.errors import AlipesError, RepositoryError, RepositoryUseError
from alipes.repository.arguments import check_type
from alipes.repository.layout import RESERVED, check_model_name
from alipes.repository.model import Model
from alipes.repository.model_config import CONFIG_FILE
from alipes.repository.platform import Platform, conventions, platform_of
from alipes.repository.store.base import NoFilesFoundError, Store
from alipes.repository.store.open import open_store

if TYPE_CHECKING:
    from alipes.repository.ensemble import EnsembleModel

__all__ = ["ModelRepository"]

_log = logging.getLogger(__name__)


class ModelRepository:
    """The models below one root, which is made if it is missing: a folder, or an address such as `s3://bucket/models`.

    A model is added, then exported; `alipes serve models`, or `alipes.serve("models")` in a script, serves it.

    Attributes:
        fs: Where the files lie.

    Examples:
        >>> import numpy as np
        >>> from alipes import ModelRepository
        >>> def louder(sound):
        ...     return sound * np.float32(2)
        >>> repo = ModelRepository("models")
        >>> model = repo.add("louder", platform="python")
        >>> model.export_version(louder, input_shapes={"sound": (None, 4)}, output_names=["louder"])
        'louder/1/model.py'
        >>> list(repo.models), repo.models["louder"].versions
        (['louder'], [1])
    """

    fs: Store

    def __init__(self, root: str | os.PathLike[str], clean: bool = False, **options: Any) -> None:
        """Opens a repository and reads what is there. Entries that cannot be read are listed in `broken`.

        Args:
            root: Where it is.
            clean: Whether to remove every model that is there first.
            options: What the place needs to be opened.

        Raises:
            RepositoryError: If the place cannot be opened or made.
        """
        check_type("root", root, (str, os.PathLike), 'a folder or an address, such as "models" or "s3://bucket/models"')
        self.fs = open_store(root, **options)
        self._models: dict[str, Model] = {}
        self._broken: dict[str, str] = {}
        if clean:
            for name in self.fs.list():
                self.fs.remove(name)
        self.refresh()

    def __repr__(self) -> str:
        """Where it is and what it holds."""
        return f"ModelRepository({str(self.fs)!r}, {len(self._models)} models)"

    def __fspath__(self) -> str:
        """Where it is, for whatever takes a path: `serve(repo)`."""
        return str(self.fs)

    def __getitem__(self, name: str) -> Model:
        """`repo["m"]` is `repo.models["m"]`."""
        return self.models[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is a model of the name."""
        return name in self._models

    def __iter__(self) -> Iterator[str]:
        """The names of the models."""
        return iter(self.models)

    @property
    def models(self) -> dict[str, Model]:
        """The models by name; a dictionary of its own at each call."""
        return Named(self._models, f"the repository {self.fs}", "model")

    @property
    def broken(self) -> Mapping[str, str]:
        """The entries that could not be read at the last look, each with the reason."""
        return MappingProxyType(self._broken)

    def refresh(self) -> None:
        """Look again. Models that were known and have not changed their kind stay the same objects, read anew."""
        known, self._models, self._broken = self._models, {}, {}
        for name in self.fs.list():
            if name in RESERVED or not self.fs.isdir(name):
                continue
            try:
                platform = self._platform_of(name)
                if platform is None:
                    continue
                model = known.get(name)
                if model is not None and model.platform is platform:
                    model.config.reload()
                    model._unwritten = False
                else:
                    model = Model(name, self, platform)
                self._models[name] = model
            except (AlipesError, OSError, UnicodeDecodeError) as error:
                self._broken[name] = str(error)
                _log.warning("model '%s' in %s cannot be read: %s", name, self.fs, error)
        # What was added and not exported yet has left nothing to be read.
        for name, model in known.items():
            if name not in self._models and name not in self._broken and (self.fs.isdir(name) or model.is_new):
                self._models[name] = model

    def add(
        self, name: str, platform: Platform | str, force: bool = False, *, max_batch_size: int | None = None
    ) -> Model:
        """The model of a name, which is added where it is missing. On disk it appears with its first export.

        Args:
            name: Its name, which is that of its folder.
            platform: What it is exported as: a `Platform`, or its name, such as `"onnx"` or `"python"`.
            force: Whether to add `name_0`, `name_1` and so on where the name is taken.
            max_batch_size: Rows that may run together, as `export_version` takes it; None leaves it as it is.

        Returns:
            The model; where there is one of the name and platform, that one.

        Raises:
            RepositoryUseError: If the name is taken by a model of another platform, or there is no such platform.
            RepositoryError: If no folder can have the name.
            ConfigError: If the folder is there already, with a configuration that does not fit.
        """
        check_type("name", name, str, "the name of a model")
        check_model_name(name)
        kind = Platform(platform)
        chosen = self._unused(name, kind) if force else name
        model = self._models.get(chosen)
        found = self._platform_on_disk(chosen) if model is None else model.platform
        if found not in (None, kind):
            raise self._in_use(name, found, kind)
        if model is None:
            model = Model(chosen, self, kind)
            model._unwritten = found is None
        if max_batch_size is not None:
            model.config.batch_up_to(max_batch_size)
        self._models[chosen] = model
        self._broken.pop(chosen, None)
        return model

    def pipe(self, *models: Model | str, name: str, version: int | None = None) -> EnsembleModel:
        """Write an ensemble of models in a row, each of which takes what the one before it gives.

        `repo.pipe("a", "b", name="both")` is `(repo.models["a"] >> repo.models["b"]).export("both")`. The inputs of the
        ensemble are those that requests have to bring, its outputs those of the last model.

        Args:
            models: Models of this repository, or their names, in their order.
            name: What to call the ensemble.
            version: Its number; None for one more than the highest.

        Returns:
            The ensemble, exported.

        Raises:
            ConfigError: If what one gives does not fit what the next takes.
            RepositoryUseError: If one of them is no model here, or the name is taken by another kind of model.
        """
        from alipes.repository.chain import pipe

        for one in models:
            if isinstance(one, str) and one not in self._models:
                raise self._unknown(one)
        return pipe(*(self._models[one] if isinstance(one, str) else one for one in models)).export(name, version)

    def remove(self, model: Model | str) -> None:
        """Remove a model with all its versions.

        Raises:
            RepositoryUseError: If there is no such model.
        """
        check_type("model", model, (str, Model), "a model, or its name")
        name = model if isinstance(model, str) else model.name
        if name not in self._models and name not in self._broken:
            raise self._unknown(name)
        try:
            self.fs.remove(name)
        except NoFilesFoundError:
            if not self._models[name].is_new:
                _log.warning("model '%s' had been removed from %s already", name, self.fs)
        self._models.pop(name, None)
        self._broken.pop(name, None)

    def delete(self) -> None:
        """Remove all models and the repository itself."""
        self.fs.delete()
        self._models.clear()
        self._broken.clear()

    def print_tree(self, file: IO[str] | None = None) -> None:
        """Print the folders and files."""
        from alipes.repository.tree import print_tree

        print_tree(self, file)

    def _unused(self, name: str, platform: Platform) -> str:
        """The name, or the first of `name_0`, `name_1` and so on that no other model has."""
        numbered = (f"{name}_{index}" for index in itertools.count())
        for one in itertools.chain([name], numbered):
            if one not in self._models and self._platform_on_disk(one) in (None, platform):
                return one
        raise AssertionError("numbers do not end")

    def _platform_on_disk(self, name: str) -> Platform | None:
        """What kind of model the folder of a name holds that is not known yet; None where a model may be written."""
        if name in self._broken or not self.fs.isdir(name):
            return None
        return self._platform_of(name)

    def _unknown(self, name: str) -> RepositoryUseError:
        return RepositoryUseError(
            f"there is no model '{name}' in {self.fs}; it has {nearest_first(name, self._models)}", model=name
        )

    def _in_use(self, name: str, found: Platform | None, wanted: Platform) -> RepositoryUseError:
        has = found.name if found is not None else "nothing known"
        return RepositoryUseError(
            f"Model {name} already exists in {self.fs} as {has}, not {wanted.name}: "
            f'add it with platform="{has.lower()}", take another name, or call remove("{name}") first',
            model=name,
        )

    def _platform_of(self, name: str) -> Platform | None:
        """What kind of model a folder holds; None for one that holds nothing yet.

        Raises:
            RepositoryError: If it holds something else.
        """
        try:
            config = parse_pbtxt(str(self.fs.read(f"{name}/{CONFIG_FILE}")), Path(f"{name}/{CONFIG_FILE}"))
        except NoFilesFoundError:
            return self._platform_by_files(name)
        found = platform_of(config)
        if found is None and not (config.platform or config.backend):
            found = self._platform_by_files(name)
        if found is None:
            called = config.platform or config.backend or "nothing"
            raise RepositoryError(f"its configuration names {called}, which is not a known kind of model", model=name)
        return found

    def _platform_by_files(self, name: str) -> Platform | None:
        """A version whose file declares everything needs no configuration, on a server and in a repository."""
        names = self.fs.list(name)
        for version in (one for one in names if one.isdigit()):
            files = self.fs.list(f"{name}/{version}")
            found = next((kind for kind, file in conventions.items() if file in files), None)
            if found is not None:
                return found
        if names:
            raise RepositoryError("it has no config.pbtxt and no version with a file of a known name", model=name)
        return None
