"""The plan of a load: the model's configuration, and the specification of each version for the data plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from alipes import _core
from alipes.backends.base import Draft, Neighbours
from alipes.backends.onnxruntime.library import silence_telemetry
from alipes.backends.prepare import BackendOf, LoadPlan, adapt_version, prepare_version
from alipes.backends.registry import backend_of
from alipes.config.gpus import Gpu, count_gpus_as_listed
from alipes.config.options import ServerOptions
from alipes.config.override import parse_override
from alipes.config.poll import poll_model
from alipes.config.schema import ModelConfig
from alipes.model_load import Load
from alipes.repository.layout import ModelFolder


class Planner:
    """Reads configurations by the server's options, with the backends of this machine."""

    def __init__(
        self,
        options: ServerOptions,
        *,
        backend_of: BackendOf = backend_of,
        gpus: Callable[[], Sequence[Gpu]] = _core.gpus,
    ) -> None:
        """Takes what `alipes.backends.prepare` needs to know; `gpus` lists those that this process may use."""
        silence_telemetry()  # before any engine is opened, and before there are threads
        count_gpus_as_listed()
        self._machine = cache(lambda: tuple(gpus()))  # the driver is not loaded before a model may run on a GPU
        self._options = options
        self._backend_of = backend_of

    def poll(self, folder: ModelFolder, override: str | None) -> ModelConfig:
        """The configuration that all versions of a model share.

        Args:
            folder: The model's folder.
            override: Configuration as JSON, in place of the folder's own.

        Raises:
            ConfigError: If the model cannot be taken up.
        """
        config = parse_override(override) if override is not None else None
        return poll_model(folder.path, folder.name, self._options, config)

    def plan(
        self,
        folder: ModelFolder,
        config: ModelConfig,
        version: int,
        *,
        decoupled: frozenset[str] = frozenset(),
        load: Load | None = None,
    ) -> LoadPlan:
        """What is needed to load one version.

        Args:
            folder: The model's folder.
            config: The configuration that all versions share.
            version: The version.
            decoupled: Of an ensemble: those of its models that may respond any number of times.
            load: The load that this is part of; cancelled, it ends what was begun.

        Raises:
            ConfigError: If the configuration is wrong or does not fit the model.
            ModelLoadError: If the backend or what it needs is missing, the model cannot be read, or the load is
                cancelled.
        """
        neighbours = Neighbours(folder.namespace, decoupled)
        draft = Draft(config, folder.path, version, self._options, neighbours, folder.is_bare, load or Load())
        return prepare_version(draft, backend_of=self._backend_of, machine=self._machine)

    def adapt(self, folder: ModelFolder, plan: LoadPlan, config: ModelConfig) -> LoadPlan:
        """The new specification of a loaded version if only instance groups or the version policy have changed.

        Raises:
            ConfigError: If the instances cannot be had.
            ModelLoadError: If the backend or what it needs is missing.
        """
        return adapt_version(
            plan, config, folder.path, self._options, backend_of=self._backend_of, machine=self._machine
        )
