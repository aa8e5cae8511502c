"""A reflection client learns everything from the server: services, methods, messages. It asks for what it has found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import numpy as np
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from support.models import add_model
from support.server import ServerProcess

proto_reflection = pytest.importorskip(
    "grpc_reflection.v1alpha.proto_reflection_descriptor_database", reason="grpcio-reflection is not installed"
)

Serve = Callable[..., ServerProcess]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    return serve_module(repository)


@pytest.fixture
def channel(server: ServerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.grpc) as channel:
        yield channel


def test_the_services_are_listed(channel: grpc.Channel) -> None:
    database = proto_reflection.ProtoReflectionDescriptorDatabase(channel)
    assert set(database.get_services()) == {
        "inference.GRPCInferenceService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    }


def test_a_client_without_any_proto_file_infers(channel: grpc.Channel) -> None:
    pool = DescriptorPool(proto_reflection.ProtoReflectionDescriptorDatabase(channel))
    method = pool.FindServiceByName("inference.GRPCInferenceService").FindMethodByName("ModelInfer")
    request = GetMessageClass(method.input_type)(model_name="double")
    request.inputs.add(name="X", datatype="FP32", shape=[1, 2]).contents.fp32_contents.extend([1, 2])
    call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    response = GetMessageClass(method.output_type).FromString(call(request.SerializeToString(), timeout=60))
    assert list(np.frombuffer(response.raw_output_contents[0], np.float32)) == [2, 4]


def test_unknown_names_are_reported(channel: grpc.Channel) -> None:
    pool = DescriptorPool(proto_reflection.ProtoReflectionDescriptorDatabase(channel))
    with pytest.raises(KeyError):
        pool.FindMessageTypeByName("inference.Nothing")
