"""Prepares models of TensorFlow and Keras: a folder `model.savedmodel`, or a file `model.keras`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from alipes.backends.framework import FrameworkBackend
from alipes.config.framework_parameters import TENSORFLOW_PARAMETERS
from alipes.config.parameters import Parameter
from alipes.errors import ConfigError

__all__ = ["TensorflowBackend"]

_GRAPH: Final = "model.graphdef"


class TensorflowBackend(FrameworkBackend):
    """Prepares one version of a model that TensorFlow runs.

    The last of its files is what TensorFlow Serving looks for: there, a version's folder is itself the SavedModel.
    """

    program: ClassVar[str] = "alipes.worker.frameworks.tensorflow"
    extra: ClassVar[str] = "alipes[keras]"
    files: ClassVar[tuple[str, ...]] = ("model.savedmodel", "model.keras", "saved_model.pb")
    parameters: ClassVar[tuple[Parameter, ...]] = TENSORFLOW_PARAMETERS

    def _file(self) -> Path:
        """The folder of a SavedModel, its `saved_model.pb`, or a Keras file.

        Raises:
            ConfigError: If there is none, or it is a graph without signatures.
        """
        config = self.draft.config
        if config.platform == "tensorflow_graphdef" or config.default_model_filename == _GRAPH:
            raise ConfigError(
                f"model '{config.name}' is a GraphDef, which is not served: it does not say its inputs, outputs and "
                "variables; write it as a SavedModel, model.savedmodel, with "
                "tf.compat.v1.saved_model.simple_save(session, folder, inputs, outputs)",
                key="platform",
            )
        return super()._file()
