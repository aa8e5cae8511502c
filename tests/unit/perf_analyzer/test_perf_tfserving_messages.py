"""Messages of TensorFlow Serving have the names, numbers and types that are published.

The bytes were written by classes that protoc generated from TensorFlow's own files (the package `tensorflow-protobuf`).
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from alipes.compat.perf_analyzer.tfserving_messages import TENSORFLOW_TYPES, message

NUMBERS = "0a0a0a016d120208031a0173121b0a0178121608011208120208011202080222080000803f00000040"
TEXTS = "0a0b0a016d2206737461626c6512120a0174120d08071204120208024201614200"
ASKED = "0a030a016d120d7369676e61747572655f646566"
DESCRIBED = (
    "0a070a016d1202080112bb010a0d7369676e61747572655f64656612a9010a36747970652e676f6f676c65617069732e636f6d2f74656e736f"
    "72666c6f772e73657276696e672e5369676e61747572654465664d6170126f0a6d0a0f73657276696e675f64656661756c74125a0a1f0a0178"
    "121a0a03783a3010011a11120b08ffffffffffffffffff0112020802121b0a017912160a03793a3010091a0d120b08ffffffffffffffffff01"
    "1a1a74656e736f72666c6f772f73657276696e672f70726564696374"
)


def numbers() -> Any:
    version = message("serving.Version", value=3)
    spec = message("serving.ModelSpec", name="m", version=version, signature_name="s")
    request = message("serving.PredictRequest", model_spec=spec)
    request.inputs["x"].CopyFrom(message("TensorProto", dtype=1, tensor_content=struct.pack("<2f", 1, 2)))
    for size in (1, 2):
        request.inputs["x"].tensor_shape.dim.add(size=size)
    return request


def texts() -> Any:
    spec = message("serving.ModelSpec", name="m", version_label="stable")
    request = message("serving.PredictRequest", model_spec=spec)
    request.inputs["t"].CopyFrom(message("TensorProto", dtype=7, string_val=[b"a", b""]))
    request.inputs["t"].tensor_shape.dim.add(size=2)
    return request


def asked() -> Any:
    spec = message("serving.ModelSpec", name="m")
    return message("serving.GetModelMetadataRequest", model_spec=spec, metadata_field=["signature_def"])


@pytest.mark.parametrize(("made", "expected"), [(numbers(), NUMBERS), (texts(), TEXTS), (asked(), ASKED)])
def test_messages_are_written_as_the_generated_classes_write_them(made: Any, expected: str) -> None:
    assert made.SerializeToString(deterministic=True).hex() == expected


def test_a_description_is_read_as_it_was_written() -> None:
    response = message("serving.GetModelMetadataResponse")
    response.MergeFromString(bytes.fromhex(DESCRIBED))
    signatures = message("serving.SignatureDefMap")
    signatures.MergeFromString(response.metadata["signature_def"].value)
    signature = signatures.signature_def["serving_default"]
    assert signature.method_name == "tensorflow/serving/predict"
    [(name, info)] = signature.inputs.items()
    assert (name, info.name, info.dtype) == ("x", "x:0", TENSORFLOW_TYPES["FP32"])
    assert [dim.size for dim in info.tensor_shape.dim] == [-1, 2]
    assert signature.outputs["y"].dtype == TENSORFLOW_TYPES["INT64"]
