"""Where releases of Triton differ, the flag `--triton-release` decides: each answer in 2.51 and later, over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import grpc
import pytest
from support.models import add_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S
from tritonclient.grpc import service_pb2, service_pb2_grpc

RELEASES = ("2.51", "2.73")
ONE = b"\0\0\x80\x3f"

Say = Callable[[service_pb2_grpc.GRPCInferenceServiceStub], Any]


def infer(outputs: list[str]) -> service_pb2.ModelInferRequest:
    request = service_pb2.ModelInferRequest(model_name="double", raw_input_contents=[ONE * 2])
    request.inputs.add(name="X", datatype="FP32", shape=[1, 2])
    for name in outputs:
        request.outputs.add(name=name)
    return request


def ready(name: str, version: str = "") -> Say:
    return lambda stub: stub.ModelReady(service_pb2.ModelReadyRequest(name=name, version=version), timeout=TIMEOUT_S)


def streamed(stub: service_pb2_grpc.GRPCInferenceServiceStub) -> str:
    (answer,) = stub.ModelStreamInfer(iter([infer(["Y", "Y"])]), timeout=TIMEOUT_S)
    return str(answer.error_message) or f"{len(answer.infer_response.outputs)} output"


TABLE: tuple[tuple[str, Say, str, str], ...] = (
    (
        "the version of the server",
        lambda stub: stub.ServerMetadata(service_pb2.ServerMetadataRequest(), timeout=TIMEOUT_S).version,
        "2.51.0",
        "2.73.0",
    ),
    (
        "an output that is asked for twice",
        lambda stub: f"{len(stub.ModelInfer(infer(['Y', 'Y']), timeout=TIMEOUT_S).outputs)} output",
        "1 output",
        "INVALID_ARGUMENT: [request id: <id_unknown>] output 'Y' already exists in request",
    ),
    (
        "an output that is asked for twice on a stream",
        streamed,
        "1 output",
        "[request id: <id_unknown>] output 'Y' already exists in request",
    ),
    ("a model that nobody knows", ready("nobody"), "", "NOT_FOUND: Request for unknown model: 'nobody' is not found"),
    (
        "a version that nobody knows",
        ready("double", "7"),
        "",
        "NOT_FOUND: Request for unknown model: 'double' version 7 is not found",
    ),
    (
        "forwarded metadata with a name of the protocol",
        lambda stub: stub.ModelInfer(infer([]), metadata=(("priority", "5"),), timeout=TIMEOUT_S).model_name,
        "double",
        "INVALID_ARGUMENT: Header 'priority' is reserved for Triton usage and cannot be forwarded.",
    ),
)


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Mapping[str, ServerProcess]:
    """A server of each release."""
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    forward = "--grpc-header-forward-pattern=^priority$"
    return {release: serve_module(repository, forward, f"--triton-release={release}") for release in RELEASES}


def said(server: ServerProcess, say: Say) -> str:
    """The answer as text, or the status and the text of an error."""
    with grpc.insecure_channel(server.grpc) as channel:
        try:
            return str(say(service_pb2_grpc.GRPCInferenceServiceStub(channel)))
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"


@pytest.mark.parametrize(("say", "old", "later"), [pytest.param(*row[1:], id=row[0]) for row in TABLE])
def test_each_release_answers_grpc_in_its_own_way(
    servers: Mapping[str, ServerProcess], say: Say, old: str, later: str
) -> None:
    assert [said(servers[release], say) for release in RELEASES] == [old, later]
