"""The models that are tuned: their folders, their configurations as written and as completed, their sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from alipes.config.pbtxt import read_config
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig, copy_config, new_config
from alipes.errors import ConfigError
from alipes.tune.knobs import Value

__all__ = ["TunedModel", "read_models"]

_MAX_STEPS: Final = 256
"""Models that one search may involve, those of ensembles included."""


@dataclass(frozen=True, eq=False)
class TunedModel:
    """A model of the repository.

    Attributes:
        name: Its name.
        folder: Where it is; `None` on a server that runs already.
        written: Its configuration file; empty where there is none.
    """

    name: str
    folder: Path | None
    written: ModelConfig

    @property
    def steps(self) -> Sequence[str]:
        """The models of an ensemble; empty for any other."""
        return list(dict.fromkeys(step.model_name for step in self.written.ensemble_scheduling.step))

    @property
    def is_ensemble(self) -> bool:
        """Whether it is made of others."""
        return bool(self.written.platform == ENSEMBLE)

    @cached_property
    def files(self) -> Sequence[Path]:
        """All files below its folder, links followed."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file()) if self.folder is not None else []

    @property
    def byte_size(self) -> int:
        """The largest of its versions' files: what an instance has to hold at least."""
        sizes: dict[str, int] = {}
        for path in self.files:
            top = self._within(path).parts[0]
            if top.isdecimal():
                sizes[top] = sizes.get(top, 0) + path.stat().st_size
        return max(sizes.values(), default=0)

    def digest(self) -> str:
        """Changes with any file of the model."""
        made = hashlib.sha256()
        for path in self.files:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            made.update(f"{self._within(path)} {content}\n".encode())
        if self.folder is None:
            made.update(bytes(self.written.SerializeToString(deterministic=True)))
        return made.hexdigest()

    def _within(self, path: Path) -> Path:
        return path.relative_to(self.folder) if self.folder is not None else path


def present_values(config: ModelConfig) -> dict[str, Value]:
    """What a completed configuration says for the knobs that it sets."""
    values: dict[str, Value] = {
        "instances": max(1, sum(group.count for group in config.instance_group)),
        "max_batch_size": config.max_batch_size,
    }
    if config.HasField("dynamic_batching"):
        values["queue_delay_us"] = config.dynamic_batching.max_queue_delay_microseconds
        if config.dynamic_batching.preferred_batch_size:
            values["preferred"] = tuple(sorted(config.dynamic_batching.preferred_batch_size))
    threads = config.parameters["intra_op_thread_count"].string_value if config.parameters else ""
    if threads.isdecimal() and int(threads) > 0:
        values["engine_threads"] = int(threads)
    return values


def read_models(repository: Path, names: Iterable[str]) -> dict[str, TunedModel]:
    """The models of these names and those that ensembles among them are made of.

    Raises:
        ConfigError: If one is not there, or its configuration cannot be read.
    """
    found: dict[str, TunedModel] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        if len(found) >= _MAX_STEPS:
            raise ConfigError(f"more than {_MAX_STEPS} models are involved, which is the limit", key="models")
        found[name] = _read(repository, name)
        waiting.extend(found[name].steps)
    return found


def _read(repository: Path, name: str) -> TunedModel:
    folder = repository / name
    if not repository.is_dir():
        raise ConfigError(f"there is no folder '{repository}': name the folder with the models", path=repository)
    if name in ("", ".", "..") or "/" in name or not folder.is_dir():
        there = sorted(path.name for path in repository.iterdir() if path.is_dir())
        raise ConfigError(
            f"there is no model '{name}' in {repository}: it has {', '.join(there[:20]) or 'none'}", path=repository
        )
    written = read_config(folder)
    config = copy_config(written) if written is not None else new_config()
    config.name = config.name or name
    return TunedModel(name, folder, config)
