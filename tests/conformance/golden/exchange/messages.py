"""The gRPC methods and their messages: those of the real client, and the health service, which it leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tritonclient.grpc import service_pb2

_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_INT32 = descriptor_pb2.FieldDescriptorProto.TYPE_INT32


@dataclass(frozen=True)
class Method:
    """A unary method.

    Attributes:
        path: Its place on the wire, ``/package.Service/Name``.
        request: Class of its request.
        response: Class of its response.
    """

    path: str
    request: Any
    response: Any


def find(rpc: str) -> Method | None:
    """The method that a scenario calls ``rpc``; None for a name that no service has."""
    if rpc == "Health.Check":
        return _health_check()
    service = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    method = service.methods_by_name.get(rpc)
    if method is None:
        return None
    types = (method.input_type, method.output_type)
    return Method(unknown_path(rpc), *(message_factory.GetMessageClass(kind) for kind in types))


def unknown_path(rpc: str) -> str:
    """Where the inference service would have a method ``rpc``."""
    return f"/inference.GRPCInferenceService/{rpc}"


def _health_check() -> Method:
    # The status is an enumeration on the wire; as a number it is compared with the recorded one.
    file = descriptor_pb2.FileDescriptorProto(name="health_check.proto", package="grpc.health.v1", syntax="proto3")
    file.message_type.add(name="HealthCheckRequest").field.add(name="service", number=1, type=_STRING)
    file.message_type.add(name="HealthCheckResponse").field.add(name="status", number=1, type=_INT32)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = ("HealthCheckRequest", "HealthCheckResponse")
    types = (pool.FindMessageTypeByName(f"grpc.health.v1.{name}") for name in names)
    return Method("/grpc.health.v1.Health/Check", *(message_factory.GetMessageClass(kind) for kind in types))
