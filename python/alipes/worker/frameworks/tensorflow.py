"""Opens models of TensorFlow: SavedModels, and Keras files, which become one in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from alipes.worker.frameworks.keras_archive import check_archive
from alipes.worker.frameworks.saved_model_file import read_without_tensorflow

if TYPE_CHECKING:
    from alipes.signature import Signature
    from alipes.worker.frameworks.opened import OpenedModel, Opening

__all__ = ["open_model", "read_signature"]

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # its errors alone, and none of its notices


def open_model(opening: Opening) -> OpenedModel:
    """Opens a SavedModel's folder, the file in it, or a `.keras` file.

    Raises:
        LoadError: If the file cannot be read, or a parameter is wrong.
    """
    if _is_keras(opening):
        archive = check_archive(opening)
        from alipes.worker.frameworks.keras_file import open_keras  # a SavedModel does without Keras

        return open_keras(opening, archive)
    from alipes.worker.frameworks.saved_model import open_saved_model

    return open_saved_model(opening, str(_folder(opening)))


def read_signature(opening: Opening) -> Signature | None:
    """What the file says of its inputs and outputs: a SavedModel does so without TensorFlow.

    Raises:
        LoadError: If the file cannot be read.
    """
    return open_model(opening).signature if _is_keras(opening) else read_without_tensorflow(opening, _folder(opening))


def _is_keras(opening: Opening) -> bool:
    return opening.file.suffix == ".keras"


def _folder(opening: Opening) -> Path:
    return opening.file if opening.file.is_dir() else opening.file.parent
