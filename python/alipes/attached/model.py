"""`AttachedModel`: the declaration of a model, and the objects of this script that are its instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alipes.attached.live import LiveInstance
from alipes.config.override import from_document
from alipes.config.pbtxt import parse_pbtxt, to_pbtxt
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError
from alipes.repository.instances_file import write_side_by_side
from alipes.repository.layout import check_model_name

__all__ = ["AttachedModel"]

_BACKEND: Final = "attached"


class AttachedModel:
    """A model of which each instance is an object of this script.

    Attributes:
        name: Its name.
        version: Its version.
        instances: What executes, one for each instance.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, Any] | str,
        instances: Sequence[object],
        *,
        version: int = 1,
        side_by_side: int = 0,
    ) -> None:
        """Reads the declaration; nothing is called yet.

        Args:
            name: The model's name.
            config: What a `config.pbtxt` says: its text, or a mapping with the fields' names, such as ``{"input":
                [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}], ...}``. Name, backend and instance groups
                follow from the other arguments.
            instances: For each instance a callable that takes a list of requests and returns a list of responses, or
                an object with such an `execute`. It may have `initialize(args)`, `finalize()` and `is_ready()`, as
                Triton's Python models do. One execution of an instance runs at a time, on the instance's thread.
            version: The model's version, from 1.
            side_by_side: Requests that an instance works on at the same time, at least, where it answers them by their
                response senders after it has returned; 0 where it answers them when it returns.

        Raises:
            ConfigError: If the configuration cannot be read or contradicts the other arguments, or an instance cannot
                be called.
            RepositoryError: If the name cannot be that of a folder.
        """
        check_model_name(name)
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise ConfigError(
                f"model '{name}' cannot have version {version!r}: it takes an integer from 1", key="version"
            )
        if isinstance(instances, str) or not isinstance(instances, Sequence) or not instances:
            raise ConfigError(
                f"model '{name}' needs a list of instances, at least one, got {instances!r}", key="instances"
            )
        self.name = name
        self.version = version
        self._side_by_side = side_by_side
        self._config = _completed(_read(config, name), name, len(instances))
        self.instances = tuple(LiveInstance(one, name, number) for number, one in enumerate(instances))

    def __repr__(self) -> str:
        """Name, version and number of instances."""
        return f"AttachedModel({self.name!r}, version={self.version}, {len(self.instances)} instances)"

    @property
    def config(self) -> str:
        """The configuration as the text of a `config.pbtxt`."""
        return to_pbtxt(self._config)

    def write(self, repository: Path) -> Path:
        """Writes the folder that stands for the model in a repository; gives the folder."""
        folder = repository / self.name
        (folder / str(self.version)).mkdir(parents=True)
        (folder / "config.pbtxt").write_text(self.config, encoding="utf-8")
        write_side_by_side(folder / str(self.version), self._side_by_side)
        return folder


def _read(config: Mapping[str, Any] | str, name: str) -> ModelConfig:
    if isinstance(config, str):
        return parse_pbtxt(config)
    if isinstance(config, Mapping):
        return from_document(dict(config))
    raise ConfigError(
        f"the configuration of model '{name}' is a {type(config).__name__}; it takes a mapping of fields, or the "
        "text of a config.pbtxt",
        key="config",
    )


def _completed(config: ModelConfig, name: str, count: int) -> ModelConfig:
    """The configuration with what follows from the other arguments."""
    for key, found, expected in (("name", config.name, name), ("backend", config.backend, _BACKEND)):
        if found not in {"", expected}:
            raise ConfigError(
                f"the configuration of model '{name}' has {key} '{found}', expected '{expected}'", key=key
            )
    if config.platform:
        raise ConfigError(
            f"the configuration of model '{name}' has platform '{config.platform}', and an attached model has none",
            key="platform",
        )
    named = sum(group.count or 1 for group in config.instance_group)
    if config.instance_group and named != count:
        raise ConfigError(
            f"the configuration of model '{name}' has {named} instances in its instance_group, and {count} objects "
            "were given: leave instance_group out",
            key="instance_group",
        )
    config.name, config.backend = name, _BACKEND
    if not config.instance_group:
        config.instance_group.add(count=count, kind="KIND_CPU")
    return config
