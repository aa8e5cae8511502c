"""Prepares models of trees as Triton lays them out: the parameter `model_type` says what the file is."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from alipes.backends.framework import FrameworkBackend
from alipes.errors import ConfigError

__all__ = ["FilBackend"]

_KEY: Final = "model_type"
_USUAL: Final = "xgboost"

_FILES: Final = {
    "xgboost": "xgboost.model",
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
}
"""Triton's types of files, each with the name that such a file has where the configuration names none."""

_TREELITE: Final = "treelite_checkpoint"


class FilBackend(FrameworkBackend):
    """Prepares one version of a model of trees.

    Source: Triton's FIL backend, "Model Configuration".
    """

    program: ClassVar[str] = "alipes.worker.frameworks.fil"
    extra: ClassVar[str] = "alipes[xgboost,lightgbm]"

    def _file(self) -> Path:
        """The file that the configuration names, else the one that goes with its type.

        Raises:
            ConfigError: If the type is unknown or not served, or there is no such file.
        """
        config = self.draft.config
        kind = config.parameters[_KEY].string_value if _KEY in config.parameters else _USUAL
        if kind == _TREELITE:
            raise ConfigError(
                f"model '{config.name}': files of Treelite are not served; save the model in the format of the library "
                f'that trained it, with {_KEY} {", ".join(_FILES)}, or take backend: "sklearn" for scikit-learn',
                key=f"parameters.{_KEY}",
            )
        if kind not in _FILES:
            raise ConfigError(
                f"model '{config.name}': parameter {_KEY} must be one of {', '.join(_FILES)}, got '{kind}'",
                key=f"parameters.{_KEY}",
            )
        config.default_model_filename = config.default_model_filename or _FILES[kind]
        return super()._file()
