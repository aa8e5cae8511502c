"""The golden gRPC vectors are what the real client's messages are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from tritonclient.grpc import service_pb2

VECTORS = Path(__file__).parents[1] / "vectors" / "grpc"


def _vectors(name: str) -> list[Any]:
    vectors = json.loads((VECTORS / name).read_text())
    return [pytest.param(vector, id=vector["fact"]) for vector in vectors]


@pytest.mark.parametrize("vector", _vectors("requests.json"))
def test_request_vectors_are_what_the_client_sends(vector: dict[str, Any]) -> None:
    message = json_format.ParseDict(vector["message"], service_pb2.ModelInferRequest())
    assert message.SerializeToString(deterministic=True).hex() == vector["wire"]


@pytest.mark.parametrize("vector", _vectors("responses.json"))
def test_response_vectors_are_what_the_client_reads(vector: dict[str, Any]) -> None:
    message = service_pb2.ModelInferResponse.FromString(bytes.fromhex(vector["wire"]))
    assert message == json_format.ParseDict(vector["message"], service_pb2.ModelInferResponse())
    data = [tensor["data"] for tensor in vector["response"]["outputs"]]
    assert [contents.hex() for contents in message.raw_output_contents] == data
