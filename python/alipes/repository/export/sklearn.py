"""Models of scikit-learn as ONNX, by the package skl2onnx."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from alipes.config.datatypes import v2_name
from alipes.errors import ExportError
from alipes.repository.declare import datatype_number
from alipes.repository.export.compare import OnnxRun, check_numbers, judged
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.onnx_file import declare_onnx
from alipes.repository.export.request import ExportRequest
from alipes.repository.platform import Platform, conventions
from alipes.repository.tensors import model_shape

__all__ = ["Sklearn"]

_log = logging.getLogger(__name__)

_OPSET: Final = 17
_ROWS: Final = 8
_COLUMNS: Final = {
    "BOOL": "BooleanTensorType",
    "INT32": "Int32TensorType",
    "INT64": "Int64TensorType",
    "FP32": "FloatTensorType",
    "FP64": "DoubleTensorType",
    "BYTES": "StringTensorType",
}


class Sklearn(Exporter):
    """Writes estimators and pipelines as ONNX, a classifier's probabilities as one tensor.

    Without shapes the model takes one input, `input`, of as many columns as it was fitted on. All options go to
    `skl2onnx.to_onnx`.
    """

    platform: ClassVar[Platform] = Platform.ONNX
    options: ClassVar[frozenset[str] | None] = None

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Whatever scikit-learn calls an estimator."""
        base = sys.modules.get("sklearn.base")
        return base is not None and isinstance(source, base.BaseEstimator)

    def export(self, source: Any, request: ExportRequest) -> None:
        """Convert, name the outputs, and run what was written."""
        if find_spec("skl2onnx") is None:
            raise ExportError(
                "exporting models of scikit-learn needs the package skl2onnx: pip install 'alipes[sklearn]'"
            )
        skl2onnx: Any = import_module("skl2onnx")
        settings: dict[str, Any] = {"target_opset": _OPSET}
        if hasattr(source, "predict_proba"):
            settings["options"] = {id(source): {"zipmap": False}}
        made = skl2onnx.to_onnx(source, initial_types=_columns(source, request), **{**settings, **request.options})
        names = request.output_names or [tensor.name for tensor in request.config.output]
        if names:
            _rename(made, list(names), request.config.name)
        file = request.folder / conventions[self.platform]
        file.write_bytes(made.SerializeToString())
        declare_onnx(file, request)
        if request.check:
            _check(source, file, request)


def _columns(source: Any, request: ExportRequest) -> list[tuple[str, Any]]:
    """Names and types of the inputs, as skl2onnx takes them."""
    types: Any = import_module("skl2onnx.common.data_types")
    config = request.config
    shapes = request.input_shapes
    if shapes is None:
        shapes = {tensor.name: model_shape(config._proto, tensor) for tensor in config.input}
    if not shapes:
        columns = getattr(source, "n_features_in_", None)
        if columns is None:
            raise ExportError(
                f"Must specify input shapes: model '{config.name}' does not say how many columns it takes"
            )
        shapes = {"input": (None, columns)}
    if not isinstance(shapes, Mapping):
        shapes = {f"input_{index}": shape for index, shape in enumerate(shapes)}
    wanted = request.input_dtypes or {}
    datatypes = dict(wanted) if isinstance(wanted, Mapping) else dict(zip(shapes, wanted, strict=False))
    known = {tensor.name: v2_name(tensor.data_type) for tensor in config.input}
    found = []
    for name, shape in shapes.items():
        kind = v2_name(datatype_number(datatypes.get(name, known.get(name, "FP32"))))
        if kind not in _COLUMNS:
            raise ExportError(f"input '{name}' is {kind}; skl2onnx takes {', '.join(_COLUMNS)}")
        sizes = [None if size in (None, -1) else size for size in shape]
        found.append((name, getattr(types, _COLUMNS[kind])(sizes)))
    return found


def _rename(made: Any, names: list[str], model: str) -> None:
    """Give the outputs of a graph other names, wherever they stand."""
    before = [output.name for output in made.graph.output]
    if len(before) != len(names):
        raise ExportError(
            f"export of model '{model}': {len(names)} output names, {', '.join(map(repr, names))}, for the "
            f"{len(before)} outputs {', '.join(map(repr, before))}"
        )
    new = dict(zip(before, names, strict=True))
    inner = {name for node in made.graph.node for name in (*node.input, *node.output)} - set(before)
    clashing = inner & set(names)
    if clashing:
        raise ExportError(
            f"export of model '{model}': the name '{clashing.pop()}' stands for something else in the graph"
        )
    for node in made.graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    for output in made.graph.output:
        output.name = new[output.name]


def _check(source: Any, file: Path, request: ExportRequest) -> None:
    """One input of numbers can be compared; what is made of tables cannot be guessed."""
    tensors, names = list(request.config.input), [tensor.name for tensor in request.config.output]
    kind = v2_name(tensors[0].data_type)
    if len(tensors) != 1 or kind not in ("FP32", "FP64"):
        _log.info(
            "model '%s' does not have exactly one floating-point input: its numbers are not compared",
            request.config.name,
        )
        return
    rows = _samples(request, tensors[0].name, getattr(source, "n_features_in_", tensors[0].dims[-1]))
    rows = rows.astype(np.float32 if kind == "FP32" else np.float64)
    expected = _expected(source, rows)
    if len(expected) != len(names):
        _log.info(
            "not every output of model '%s' has a known counterpart: its numbers are not compared", request.config.name
        )
        return
    found = OnnxRun(file, names)({tensors[0].name: rows})
    pairs = zip(expected, found, strict=True)
    matched = [want.astype(have.dtype).reshape(have.shape) if want.size == have.size else want for want, have in pairs]
    with judged(request):
        check_numbers(request.config.name, names, matched, found, request.tolerance)


def _samples(request: ExportRequest, name: str, columns: int) -> np.ndarray:
    examples = request.examples
    if examples is None:
        return np.random.default_rng(0).standard_normal((_ROWS, columns))
    wanted = examples.get(name) if isinstance(examples, Mapping) else examples[0]
    if wanted is None:
        raise ExportError(f"there is no example of input '{name}'")
    return np.asarray(wanted)


def _expected(source: Any, rows: np.ndarray) -> list[np.ndarray]:
    if hasattr(source, "predict_proba"):
        return [np.asarray(source.predict(rows)), np.asarray(source.predict_proba(rows))]
    if hasattr(source, "predict") and not hasattr(source, "cluster_centers_"):
        return [np.asarray(source.predict(rows))]
    return [np.asarray(source.transform(rows))] if hasattr(source, "transform") else []
