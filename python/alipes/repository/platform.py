"""The kinds of models that can be exported, each with the name of its file in a version directory."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from alipes.config.model_files import PLATFORMS
from alipes.config.nearest import nearest_first
from alipes.config.schema import ModelConfig as Message
from alipes.errors import RepositoryUseError

__all__ = ["BACKENDS", "SERVED", "Platform", "conventions", "declare_platform", "platform_of"]


class Platform(Enum):
    """What a model is exported as; the value is what `config.pbtxt` calls it.

    `Platform("onnx")` finds a platform by the name that Python has for it, in letters of any size, or by the backend
    that runs nothing else, such as `onnxruntime`.
    """

    ONNX = "onnxruntime_onnx"
    SAVEDMODEL = "tensorflow_savedmodel"
    TENSORRT = "tensorrt_plan"
    TORCHSCRIPT = "pytorch_libtorch"
    ENSEMBLE = "ensemble"
    PYTHON = "python"
    TORCHEXPORT = "pytorch_export"
    TORCHMODULE = "pytorch_module"
    SNAPSHOTTER = "snapshotter"
    AVERAGER = "averager"

    @classmethod
    def _missing_(cls, value: object) -> Platform:
        names = {name.lower(): platform for name, platform in cls.__members__.items()}
        word = str(value).lower()
        backends = [platform for platform, backend in BACKENDS.items() if backend == word]
        found = names.get(word) or (backends[0] if len(backends) == 1 else None)
        if found is not None:
            return found
        hint = _FRAMEWORKS.get(word)
        rest = hint if hint is not None else f"there are {nearest_first(word, names)}"
        raise RepositoryUseError(f"there is no platform {value!r}; {rest}")


_ROWS: Final = {Platform[row.export]: row for row in PLATFORMS if row.export}
"""The rows of the one table, by what can be exported; an ensemble is no file, and has none."""

_EMPTY: Final = "model.empty"
"""The file of a kind that has none: its configuration says all, and buckets have no empty folders."""

conventions: Final[Mapping[Platform, str]] = MappingProxyType(
    {one: (_ROWS[one].filename if one in _ROWS else "") or _EMPTY for one in Platform}
)
"""Platform -> the file, or folder, that a version consists of; an empty one where the configuration says all."""

BACKENDS: Final[Mapping[Platform, str]] = MappingProxyType({one: row.backend for one, row in _ROWS.items()})

SERVED: Final = frozenset({Platform.ENSEMBLE, *(one for one, row in _ROWS.items() if row.served)})
"""What `alipes serve` runs; the rest is written for servers that run it."""

_PYTORCH: Final = "for a model of PyTorch: take 'onnx', 'torchscript', 'torchexport' or 'torchmodule'"
_SKLEARN: Final = "for a model of scikit-learn: take 'onnx'"
_KERAS: Final = "for a model of Keras or TensorFlow: take 'savedmodel'"

_FRAMEWORKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pytorch": _PYTORCH,
        "torch": _PYTORCH,
        "sklearn": _SKLEARN,
        "scikit-learn": _SKLEARN,
        "keras": _KERAS,
        "tf": _KERAS,
    }
)
"""Names of frameworks, which are no platforms, each with the platforms that its models are exported as."""

_BACKEND_ONLY: Final = frozenset(one for one, row in _ROWS.items() if one.value != row.platform)
"""Kinds that configurations name by backend and file: Triton has no platform for them, or means less by it."""


def declare_platform(config: Message, platform: Platform) -> None:
    """Say in a configuration, in place, of which kind the model is."""
    if platform in _BACKEND_ONLY:
        config.backend = BACKENDS[platform]
        if platform is not Platform.PYTHON:
            config.default_model_filename = conventions[platform]
    else:
        config.platform = platform.value
        if platform is Platform.ENSEMBLE:
            config.ensemble_scheduling.SetInParent()


def platform_of(config: Message) -> Platform | None:
    """The kind of model that a configuration describes; None where it is none of those that can be exported."""
    if config.platform:
        if config.platform == Platform.ENSEMBLE.value:
            return Platform.ENSEMBLE
        return next((one for one, row in _ROWS.items() if row.platform == config.platform), None)
    if config.HasField("ensemble_scheduling"):
        return Platform.ENSEMBLE
    filename = config.default_model_filename
    fitting = [one for one, backend in BACKENDS.items() if backend == config.backend]
    return next((one for one in fitting if filename in ("", conventions[one])), None)
