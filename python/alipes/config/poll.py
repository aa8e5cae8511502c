"""From a model's folder to the configuration that all its versions share.

This is the first of the two stages in which Triton reports errors: a configuration is read, completed and checked as
far as that needs no version. A `ConfigError` here means that the model is not taken up at all. The second stage, one
version after the other, is `alipes.backends.prepare`.
"""

from __future__ import annotations

from pathlib import Path

from alipes.config.agents import run_agents
from alipes.config.normalize import normalize
from alipes.config.options import ServerOptions
from alipes.config.pbtxt import read_config
from alipes.config.platforms import complete_backend
from alipes.config.schema import ModelConfig, copy_config, new_config
from alipes.config.validate import check_poll
from alipes.errors import ConfigError

__all__ = ["poll_model"]


def poll_model(folder: Path, name: str, options: ServerOptions, override: ModelConfig | None = None) -> ModelConfig:
    """Read, complete and check the configuration of a model.

    Args:
        folder: The model's folder.
        name: The folder's name, which is the model's.
        options: The server's options.
        override: The configuration of a load request, from `parse_override`; replaces the file.

    Returns:
        The configuration that all versions share.

    Raises:
        ConfigError: If the model cannot be taken up; the message is what Triton logs after "Poll failed for model
            directory '<name>': ".
    """
    loaded = override if override is not None else read_config(folder, options.model.config_name)
    if loaded is None and options.model.strict_config:
        raise ConfigError(
            f"failed to open text file for read {folder / 'config.pbtxt'}: No such file or directory",
            path=folder / "config.pbtxt",
            code="NOT_FOUND",
        )
    if loaded is not None:
        run_agents(loaded, folder)
    config = copy_config(loaded) if loaded is not None else new_config()
    complete_backend(config, folder, name)
    normalize(config)
    check_poll(config, name, strict=options.model.strict_config)
    return config
