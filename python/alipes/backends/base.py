"""The seam between a load and what runs the model: each backend says how it prepares a version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from alipes.config.gpus import GpuUse
from alipes.config.options import ServerOptions
from alipes.config.schema import ModelConfig
from alipes.config.spec import model_path
from alipes.model_load import Load

__all__ = ["ALONE", "Backend", "Draft", "Engine", "Neighbours"]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a version has to know of other models.

    Attributes:
        namespace: The repository of the model, where names are unique in a repository alone.
        decoupled: Of an ensemble: those of its models that may respond any number of times.
    """

    namespace: str = ""
    decoupled: frozenset[str] = frozenset()


ALONE: Final = Neighbours()
"""Those of a version that needs to know of no other model."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A version on its way to the data plane.

    Attributes:
        config: Its configuration, a copy of its own; a backend completes it in place.
        folder: The model's folder, absolute.
        version: The version; `<folder>/<version>` holds its files.
        options: The server's options.
        neighbours: What it has to know of other models.
        is_bare: Whether its model came without a configuration, in a store, as its author has published it.
        load: The load that it is part of. What takes long asks it whether to go on (`Load.check`), and says how it is
            ended (`Load.ending`).
    """

    config: ModelConfig
    folder: Path
    version: int
    options: ServerOptions
    neighbours: Neighbours = ALONE
    is_bare: bool = False
    load: Load = field(default_factory=Load)

    @property
    def version_folder(self) -> Path:
        """The folder of the version's files."""
        return self.folder / str(self.version)

    def model_file(self) -> Path:
        """The model file, absolute.

        Raises:
            ConfigError: If there is no such file, or the name leads out of the folder.
        """
        return model_path(self.config, self.folder, self.version)


@dataclass(frozen=True, slots=True)
class Engine:
    """The specification of a version's engine for the data plane.

    Attributes:
        spec: The member `engine` of the specification.
        notices: One line for each parameter that is set and does nothing here.
        private: Parts of error texts that clients do not see, such as where a library lies; each with what stands for
            it.
    """

    spec: dict[str, Any]
    notices: tuple[str, ...] = ()
    private: Mapping[str, str] = field(default_factory=dict)


class Backend(ABC):
    """Prepares one version of a model. Made when its turn comes, on a loader's thread; slow calls are welcome there.

    `complete` and `engine` are called in this order, and each at most once.

    Attributes:
        on_gpu: Which instances run on a GPU, if it has what it needs; each reads from its kind and device where.
    """

    on_gpu: ClassVar[GpuUse] = GpuUse.EXPLICIT

    def __init__(self, draft: Draft) -> None:
        """Takes the version, its instance groups already settled.

        Raises:
            ModelLoadError: If this machine lacks what the backend needs.
        """
        self.draft = draft

    @classmethod
    def gpu_use(cls) -> GpuUse:
        """Which instances run on a GPU, with what is installed here."""
        return cls.on_gpu

    @abstractmethod
    def complete(self) -> None:
        """Complete the draft's configuration from the model itself; not called where completion is turned off.

        Raises:
            ConfigError: If the model and its configuration contradict each other.
            ModelLoadError: If the model cannot be read.
        """

    @abstractmethod
    def engine(self) -> Engine:
        """Hold the configuration, now complete and checked, against the model, and say how to run it.

        Raises:
            ConfigError: If the model and its configuration contradict each other.
            ModelLoadError: If the model cannot be read, or what it asks for is not to be had.
        """

    def adapt(self, engine: dict[str, Any]) -> dict[str, Any]:
        """The new specification of a loaded version's engine if only the instance groups of its model have changed.

        Called alone, with the draft's configuration complete. The model is not looked at again.

        Args:
            engine: The member `engine` of the specification that the version was built from.

        Raises:
            ModelLoadError: If the new instance groups are not to be had.
        """
        return engine
