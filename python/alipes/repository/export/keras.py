"""Keras models as TensorFlow's SavedModel."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from alipes.errors import ExportError
from alipes.repository.declare import declare
from alipes.repository.export.compare import check_numbers, judged
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.rows import check_rows
from alipes.repository.platform import Platform, conventions

__all__ = ["KerasSavedModel"]

_SIGNATURE: Final = "serving_default"
_ROWS: Final = 3


class KerasSavedModel(Exporter):
    """Writes models of Keras 3 and of the legacy Keras 2 as a SavedModel with one signature.

    Names, shapes and datatypes are the model's. Other names can be given, in the model's order.
    """

    platform: ClassVar[Platform] = Platform.SAVEDMODEL

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Models of whichever Keras is loaded."""
        kinds = [getattr(sys.modules.get(name), "Model", None) for name in ("keras", "tf_keras")]
        return any(kind is not None and isinstance(source, kind) for kind in kinds)

    def export(self, source: Any, request: ExportRequest) -> None:
        """Save the model under a signature of its names, and call what was saved."""
        name = request.config.name
        if find_spec("tensorflow") is None:
            raise ExportError(f"model '{name}': a SavedModel is TensorFlow's: pip install 'alipes[keras]'")
        if not getattr(source, "inputs", None):
            raise ExportError(
                f"model '{name}' was never called and has no inputs: call it once, or give it an Input layer"
            )
        inputs, outputs = _declare(source, request)
        tensorflow: Any = import_module("tensorflow")
        specs = [
            tensorflow.TensorSpec(tensor.shape, tensor.dtype, name=wanted)
            for wanted, tensor in zip(inputs, source.inputs, strict=True)
        ]

        @tensorflow.function(input_signature=specs)  # type: ignore[untyped-decorator]
        def serve(*tensors: Any) -> dict[str, Any]:
            return dict(zip(outputs, _flat(source(list(tensors) if len(tensors) > 1 else tensors[0])), strict=True))

        module = tensorflow.Module()
        module.serve = serve
        # What a function uses is saved with it only where it hangs on what is saved.
        module.weights = [getattr(weight, "_value", weight) for weight in source.variables]
        folder = request.folder / conventions[self.platform]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensorflow.saved_model.save(module, str(folder), signatures={_SIGNATURE: serve})
        if request.check:
            _check(source, inputs, outputs, folder, request)


def _declare(source: Any, request: ExportRequest) -> tuple[list[str], list[str]]:
    config, shapes = request.config, request.input_shapes
    known = [tensor.name for tensor in config.input]
    names = list(shapes) if isinstance(shapes, Mapping) else known
    inputs = names or [tensor.name.partition(":")[0] for tensor in source.inputs]
    tensors = list(source.outputs)
    outputs = list(request.output_names or [tensor.name for tensor in config.output] or _own_names(source))
    for side, called, found in (("input", inputs, source.inputs), ("output", outputs, tensors)):
        if len(called) != len(found):
            listed = ", ".join(map(repr, called))
            raise ExportError(f"export of model '{config.name}': {len(found)} {side}s for the names {listed}")
    own = {name: tuple(tensor.shape) for name, tensor in zip(inputs, source.inputs, strict=True)}
    if shapes is not None:
        wanted = dict(shapes) if isinstance(shapes, Mapping) else dict(zip(inputs, shapes, strict=False))
        for name, shape in wanted.items():
            sizes = tuple(None if size in (None, -1) else size for size in shape)
            if own[name] != sizes:
                raise ExportError(
                    f"export of model '{config.name}': input '{name}' was given as {list(sizes)}, the model's is "
                    f"{list(own[name])}"
                )
    types = {name: tensor.dtype for name, tensor in zip(inputs, source.inputs, strict=True)}
    declare(config._proto, "input", own, {name: _word(kind) for name, kind in types.items()})
    made = {name: tuple(tensor.shape) for name, tensor in zip(outputs, tensors, strict=True)}
    kinds = {name: _word(tensor.dtype) for name, tensor in zip(outputs, tensors, strict=True)}
    declare(config._proto, "output", made, kinds)
    return inputs, outputs


def _own_names(source: Any) -> list[str]:
    """What a model calls its outputs; a sequence of layers has no names for them in Keras 3."""
    return list(getattr(source, "output_names", None) or [source.layers[-1].name])


def _check(source: Any, inputs: Sequence[str], outputs: Sequence[str], folder: Path, request: ExportRequest) -> None:
    tensorflow: Any = import_module("tensorflow")
    samples = [
        _sample(tensor, name, request, index)
        for index, (name, tensor) in enumerate(zip(inputs, source.inputs, strict=True))
    ]
    signature = tensorflow.saved_model.load(str(folder)).signatures[_SIGNATURE]
    found = signature(**{name: tensorflow.constant(sample) for name, sample in zip(inputs, samples, strict=True)})
    expected = [np.asarray(one) for one in _flat(source(samples if len(samples) > 1 else samples[0], training=False))]
    with judged(request):
        made = [found[name].numpy() for name in outputs]
        check_numbers(request.config.name, outputs, expected, made, request.tolerance)

    def call(arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        found = signature(**{name: tensorflow.constant(arrays[name]) for name in inputs})
        return [found[tensor.name].numpy() for tensor in request.config.output]

    check_rows(request, call)


def _sample(tensor: Any, name: str, request: ExportRequest, index: int) -> np.ndarray:
    examples = request.examples
    if examples is not None:
        wanted = examples.get(name) if isinstance(examples, Mapping) else examples[index]
        if wanted is not None:
            return np.asarray(wanted)
    if None in tuple(tensor.shape)[1:]:
        raise ExportError(
            f"input '{name}' has a variable size beside the batch, so an example is needed: "
            f"examples={{'{name}': array}}"
        )
    sizes = [_ROWS if size is None else size for size in tensor.shape]
    word = _word(tensor.dtype)
    generator = np.random.default_rng(index)
    if word.startswith(("int", "uint", "bool")):
        return generator.integers(0, 2, sizes).astype(word)
    return generator.standard_normal(sizes).astype(word)


def _flat(found: Any) -> list[Any]:
    if isinstance(found, Mapping):
        return list(found.values())
    return list(found) if isinstance(found, list | tuple) else [found]


def _word(kind: Any) -> str:
    return str(getattr(kind, "name", kind))
