"""Reads `.keras` files, which become SavedModels in TensorFlow's memory and run as those do.

For a small model that takes 74 µs of processor time a call, where the model's own call takes 670 µs, and its
`predict_on_batch` 320 µs (Keras 3.15, TensorFlow 2.21, two cores).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from alipes.worker.frameworks.opened import reading
from alipes.worker.frameworks.saved_model import newer_explained, open_saved_model, release, tensorflow

if TYPE_CHECKING:
    from alipes.worker.frameworks.keras_archive import KerasArchive
    from alipes.worker.frameworks.opened import Opening
    from alipes.worker.frameworks.saved_model import SavedModel

__all__ = ["open_keras"]

os.environ["KERAS_BACKEND"] = "tensorflow"  # whichever this process inherited: the model runs there
keras: Any = import_module("keras")

_MEMORY: Final = "ram://alipes-keras"
_MOST_NAMED: Final = 3
"""Of own layers, classes and functions, in the message about a file that lacks them."""

_SAFE_FROM: Final = (3, 12)
"""The release from which Keras refuses code in a file by itself; older ones can be talked round (CVE-2025-12058)."""


def open_keras(opening: Opening, archive: KerasArchive) -> SavedModel:
    """Opens a `.keras` file.

    Args:
        opening: What the server says.
        archive: What the file says of itself.

    Raises:
        LoadError: If the file cannot be read, runs code without being allowed to, or names no inputs.
    """
    if release(keras.__version__) < _SAFE_FROM and not opening.allows_pickles:
        raise opening.refuse(
            f"Keras {keras.__version__} does not keep such a file from running code: update it to "
            f"{'.'.join(map(str, _SAFE_FROM))} or newer; or, if you trust its author, start the server with "
            f"--allow-pickles={opening.model_name}"
        )
    with suppress(RuntimeError):  # after the first operation the process has its threads
        tensorflow.config.threading.set_intra_op_parallelism_threads(opening.threads)
    model = _loaded(opening, archive)
    if not getattr(model, "inputs", None):
        raise opening.refuse(
            "the model does not say its inputs, since it was saved before it was called: call it once and save it, or "
            "write it as a SavedModel"
        )
    with reading(opening), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _save(model)
    try:
        return open_saved_model(opening, _MEMORY)
    finally:
        tensorflow.io.gfile.rmtree(_MEMORY)


def _loaded(opening: Opening, archive: KerasArchive) -> Any:
    """The model. Own code is the cause only where it is missed: a package that is imported may have brought it."""
    with newer_explained(opening, "keras", archive.made_by, keras.__version__):
        try:
            return keras.saving.load_model(opening.file, compile=False, safe_mode=not opening.allows_pickles)
        except Exception:
            if not archive.own:
                raise
    raise opening.refuse(
        f"it names {_listed(archive.own)}, whose code is not Keras' and not in the file: write the model with what its "
        "layers do, as a SavedModel (model.export('model.savedmodel')) or as ONNX (model.export('model.onnx', "
        "format='onnx'))"
    )


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _save(model: Any) -> None:
    """Writes a model with the names of its inputs and outputs. What its function uses has to hang on what is saved."""
    specs = [tensorflow.TensorSpec(one.shape, one.dtype, name=one.name.partition(":")[0]) for one in model.inputs]

    @tensorflow.function(input_signature=specs)  # type: ignore[untyped-decorator]
    def serve(*tensors: Any) -> dict[str, Any]:
        return _named(model, model(list(tensors) if len(tensors) > 1 else tensors[0], training=False))

    module = tensorflow.Module()
    module.model, module.serve = model, serve
    module.weights = [getattr(weight, "_value", weight) for weight in model.variables]  # TensorFlow's, not Keras'
    tensorflow.saved_model.save(module, _MEMORY, signatures={"serving_default": serve})


def _named(model: Any, found: Any) -> dict[str, Any]:
    """The outputs by name: the model's own keys, else the names of the layers that they come from."""
    if isinstance(found, Mapping) and not any(isinstance(one, Mapping | list | tuple) for one in found.values()):
        return {str(key): one for key, one in found.items()}
    outputs = tensorflow.nest.flatten(found)
    names = [str(name) for name in getattr(model, "output_names", None) or [model.layers[-1].name]]
    if len(set(names)) != len(outputs):  # a layer with several outputs has one name
        names = [f"{names[0]}_{at}" for at in range(len(outputs))]
    return dict(zip(names, outputs, strict=True))
