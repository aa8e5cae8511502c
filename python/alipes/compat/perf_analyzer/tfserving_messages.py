"""The messages of TensorFlow Serving's `PredictionService` that a load needs, by their published names and numbers.

Made in a pool of their own, so that a process may have TensorFlow's classes of these messages too.
Source: `tensorflow_serving/apis` and `tensorflow/core/framework`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto

__all__ = ["METADATA", "PREDICT", "TENSORFLOW_TYPES", "message"]

PREDICT: Final = "/tensorflow.serving.PredictionService/Predict"
METADATA: Final = "/tensorflow.serving.PredictionService/GetModelMetadata"

TENSORFLOW_TYPES: Final = {
    "FP32": 1, "FP64": 2, "INT32": 3, "UINT8": 4, "INT16": 5, "INT8": 6, "BYTES": 7, "INT64": 9, "BOOL": 10, "BF16": 14,
    "UINT16": 17, "FP16": 19, "UINT32": 22, "UINT64": 23,
}  # fmt: skip
"""Numbers of `tensorflow.DataType` by the names of the V2 protocol."""

_Field: TypeAlias = tuple[str, int, str]
"""Name, number and type; `*` in front of a type repeats it, and `map` has values of it by text."""

_MESSAGES: Final[Mapping[str, Sequence[_Field]]] = {
    "tensorflow.Dim": [("size", 1, "int64"), ("name", 2, "string")],
    "tensorflow.TensorShapeProto": [("dim", 2, "*tensorflow.Dim"), ("unknown_rank", 3, "bool")],
    "tensorflow.TensorProto": [
        ("dtype", 1, "int32"),
        ("tensor_shape", 2, "tensorflow.TensorShapeProto"),
        ("tensor_content", 4, "bytes"),
        ("string_val", 8, "*bytes"),
    ],
    "tensorflow.TensorInfo": [
        ("name", 1, "string"),
        ("dtype", 2, "int32"),
        ("tensor_shape", 3, "tensorflow.TensorShapeProto"),
    ],
    "tensorflow.SignatureDef": [
        ("inputs", 1, "map tensorflow.TensorInfo"),
        ("outputs", 2, "map tensorflow.TensorInfo"),
        ("method_name", 3, "string"),
    ],
    "tensorflow.serving.Version": [("value", 1, "int64")],
    "tensorflow.serving.ModelSpec": [
        ("name", 1, "string"),
        ("version", 2, "tensorflow.serving.Version"),
        ("signature_name", 3, "string"),
        ("version_label", 4, "string"),
    ],
    "tensorflow.serving.PredictRequest": [
        ("model_spec", 1, "tensorflow.serving.ModelSpec"),
        ("inputs", 2, "map tensorflow.TensorProto"),
    ],
    "tensorflow.serving.PredictResponse": [
        ("outputs", 1, "map tensorflow.TensorProto"),
        ("model_spec", 2, "tensorflow.serving.ModelSpec"),
    ],
    "tensorflow.serving.GetModelMetadataRequest": [
        ("model_spec", 1, "tensorflow.serving.ModelSpec"),
        ("metadata_field", 2, "*string"),
    ],
    "tensorflow.serving.Any": [("type_url", 1, "string"), ("value", 2, "bytes")],
    "tensorflow.serving.GetModelMetadataResponse": [
        ("model_spec", 1, "tensorflow.serving.ModelSpec"),
        ("metadata", 2, "map tensorflow.serving.Any"),
    ],
    "tensorflow.serving.SignatureDefMap": [("signature_def", 1, "map tensorflow.SignatureDef")],
}
"""What is read and written of them. Enumerations travel as whole numbers, and well-known types as what they hold."""


def message(kind: str, /, **fields: Any) -> Any:
    """A message by its name in a package of TensorFlow, such as `serving.PredictRequest`."""
    return _classes()[f"tensorflow.{kind}"](**fields)


@cache
def _classes() -> Mapping[str, Any]:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    pool, last = DescriptorPool(), ""
    for package in ("tensorflow", "tensorflow.serving"):
        file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
        file.dependency.extend([last] if last else [])
        for name, fields in _MESSAGES.items():
            home, _, own = name.rpartition(".")
            if home == package:
                _describe(file.message_type.add(name=own), name, fields)
        pool.Add(file)
        last = file.name
    return {name: GetMessageClass(pool.FindMessageTypeByName(name)) for name in _MESSAGES}


def _describe(made: DescriptorProto, full_name: str, fields: Sequence[_Field]) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    for name, number, kind in fields:
        field = made.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        word = kind.removeprefix("*")
        if kind.startswith("map "):
            entry = made.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
            entry.options.map_entry = True
            _describe(entry, "", [("key", 1, "string"), ("value", 2, kind.removeprefix("map "))])
            word = f"{full_name}.{entry.name}"
        if word != kind:
            field.label = FieldDescriptorProto.LABEL_REPEATED
        if "." in word:
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{word}"
        else:
            field.type = FieldDescriptorProto.Type.Value(f"TYPE_{word.upper()}")
