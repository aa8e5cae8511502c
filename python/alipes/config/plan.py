"""From a model's folder to what the data plane is told, in the two stages in which Triton reports errors.

First every model is *polled*: its configuration is read, completed and checked as far as that needs no version. A
`ConfigError` here means that the model is not taken up at all. Then each version that the policy picks is *prepared*:
the rest is completed from the model file and checked. An error here makes that version unavailable, with the error's
`reason`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alipes.config.compare import check_signature
from alipes.config.complete import complete_from_signature, is_complete
from alipes.config.normalize import normalize, normalize_instance_groups
from alipes.config.options import ServerOptions
from alipes.config.parameters import read_parameters
from alipes.config.pbtxt import read_config
from alipes.config.platforms import ENSEMBLE, complete_backend
from alipes.config.schema import ModelConfig, copy_config, new_config
from alipes.config.signature import Signature
from alipes.config.spec import EngineSetup, available_cores, model_path, to_spec
from alipes.config.support import check_support
from alipes.config.validate import check_load, check_poll
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
    check_poll(config, name, strict=options.model.strict_config)
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
    if made.platform == ENSEMBLE:
        check_support(made)
    library = library_of(made.backend)
    moved = normalize_instance_groups(made, options.model.gpu_fallback)
    signature = None
    if not is_complete(made) and not options.model.strict_config:
        signature = _describe(made, folder, version, library, describe)
        complete_from_signature(made, signature, _default_max_batch_size(options))
    check_load(made, folder, options.model)
    unsupported = check_support(made, rate_limit=options.model.rate_limit != "off")
    check_signature(made, signature or _describe(made, folder, version, library, describe))
    parameters = read_parameters({key: value.string_value for key, value in made.parameters.items()}, made.name)
    engine = EngineSetup(library, model_path(made, folder, version), parameters, available_cores())
    spec = to_spec(made, version, folder, engine)
    return LoadPlan(version, made, spec["config_json"], spec, (*moved, *unsupported, *parameters.notices))


def _describe(
    config: ModelConfig, folder: Path, version: int, library: Path, describe: Callable[[str, str], str]
) -> Signature:
    return Signature.from_json(describe(str(library), str(model_path(config, folder, version))))


def _default_max_batch_size(options: ServerOptions) -> int:
    own = options.model.onnxruntime_default_max_batch_size
    return options.model.default_max_batch_size if own is None else own
