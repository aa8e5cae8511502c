"""Repository agents: what a configuration wants done with a model's folder before it is loaded.

There is one, `checksum`, which compares files with the sums that the configuration names. It runs first of all, so that
no other file is read of a folder that is not what it should be.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from alipes.config.paths import confined, regular_size
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["run_agents"]

_KEY = "model_repository_agents.agents"


def run_agents(config: ModelConfig, folder: Path) -> None:
    """Let the agents of a configuration look at the folder, one after the other.

    Args:
        config: The configuration as it was read.
        folder: The folder that is to be loaded.

    Raises:
        ConfigError: With the first refusal; or for an agent that is not offered, in Triton's words for one that it
            does not find.
    """
    for agent in config.model_repository_agents.agents:
        if agent.name != "checksum":
            raise ConfigError(
                f"unable to find 'libtritonrepoagent_{agent.name}.so' for repo agent '{agent.name}', searched: ",
                key=_KEY,
            )
        for key in sorted(agent.parameters):
            _check_sum(folder, key, agent.parameters[key])


def _check_sum(folder: Path, key: str, expected: str) -> None:
    """Compares one file, which `MD5:<path>` names; the path begins in the folder, with a slash or without."""
    algorithm, colon, name = key.partition(":")
    if not colon:
        raise ConfigError(f"failed to parse key: {key}", key=_KEY, hint="expected MD5:<path in the model's folder>")
    if algorithm.lower() != "md5":
        raise ConfigError(f"Unsupported checksum algorithm: {algorithm}", key=_KEY, code="UNSUPPORTED")
    found = _md5(confined(folder, name.lstrip("/"), _KEY), name)
    if found != expected:
        raise ConfigError(f"Mismatched MD5 hash for file {name}, expect: {expected}, got: {found}", key=_KEY)


def _md5(path: Path, name: str) -> str:
    try:
        regular_size(path)  # a pipe would make its reader wait
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    except OSError as error:
        raise ConfigError(f"failed to open text file for read {name}: {error.strerror}", path=path, key=_KEY) from error
