"""From a model's folder to what the data plane is told, in the two stages in which Triton reports errors.

First every model is *polled*: its configuration is read, completed and checked as far as that needs no version. A
`ConfigError` here means that the model is not taken up at all. Then each version that the policy picks is *prepared*: the
rest is completed from the model file and checked. An error here makes that version unavailable, with the error's `reason`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alipes.config.normalize import normalize, normalize_instance_groups
from alipes.config.options import ServerOptions
from alipes.config.pbtxt import read_config
from alipes.config.platforms import complete_backend
from alipes.config.render import config_json
from alipes.config.schema import ModelConfig, copy_config, new_config
from alipes.config.spec import available_cores, to_spec
from alipes.errors import ConfigError

__all__ = ["LoadPlan", "poll_model", "prepare_version"]


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What is needed to load one version.

    Attributes:
        version: The version.
        config: The configuration as it is answered, complete.
        config_json: The same as the HTTP answer's text.
        spec: The specification for the data plane, to be written as JSON.
        notices: One line for each field that is set and does nothing here.
    """

    version: int
    config: ModelConfig
    config_json: str
    spec: dict[str, Any]
    notices: tuple[str, ...]


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
    given = override if override is not None else read_config(folder, options.model.config_name)
    if given is None and options.model.strict_config:
        raise ConfigError(
            f"failed to open text file for read {folder / 'config.pbtxt'}: No such file or directory",
            path=folder / "config.pbtxt",
            code="NOT_FOUND",
        )
    config = copy_config(given) if given is not None else new_config()
    complete_backend(config, folder, name)
    normalize(config)
    return config


def prepare_version(
    config: ModelConfig,
    folder: Path,
    version: int,
    options: ServerOptions,
    *,
    library_of: Callable[[str], Path],
    describe: Callable[[str, str], str],
) -> LoadPlan:
    """Complete and check a model's configuration for one version.

    Args:
        config: What `poll_model` returned; not changed.
        folder: The model's folder.
        version: The version; `<folder>/<version>` holds its files.
        options: The server's options.
        library_of: Finds the library behind a backend; raises ModelLoadError where there is none.
        describe: Tells the inputs and outputs of a model file, as `alipes._core.describe_onnx` does; slow.

    Raises:
        ConfigError: If the configuration is wrong or does not fit the model file.
        ModelLoadError: If the backend or its library is missing, or the file cannot be read.
    """
    made = copy_config(config)
    library = library_of(made.backend)
    normalize_instance_groups(made)
    spec = to_spec(made, version, folder, library, available_cores())
    return LoadPlan(version, made, config_json(made), spec, ())
