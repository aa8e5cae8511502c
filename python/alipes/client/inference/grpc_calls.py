"""A server's control calls over gRPC, with the messages of the project's own proto file."""

from __future__ import annotations

from typing import Any

from alipes import _core
from alipes.client.inference.signature import Document
from alipes.config.schema import pool

__all__ = ["GrpcCalls"]


class GrpcCalls:
    """The calls of one server."""

    def __init__(self, address: str, timeout_s: float) -> None:
        """Connects with the first call, to `host:port`."""
        self._link = _core.ClientLink(address, "grpc", timeout_s)
        self._timeout_s = timeout_s

    def is_live(self) -> bool:
        """Whether the server runs."""
        return bool(self._call("ServerLive").live)

    def is_ready(self, model: str, version: str) -> bool:
        """Whether a version can answer."""
        return bool(self._call("ModelReady", name=model, version=version).ready)

    def metadata(self, model: str, version: str) -> Document:
        """Names, datatypes and shapes."""
        return self._document(self._call("ModelMetadata", name=model, version=version))

    def config(self, model: str, version: str) -> Document:
        """The configuration."""
        document: Document = self._document(self._call("ModelConfig", name=model, version=version))["config"]
        return document

    def load(self, model: str) -> None:
        """Loads a model, or raises what the server says."""
        self._call("RepositoryModelLoad", model_name=model)

    def close(self) -> None:
        """Ends the connection."""
        self._link.close()

    def _document(self, answer: Any) -> Document:
        from google.protobuf.json_format import MessageToDict

        document: Document = MessageToDict(answer, preserving_proto_field_name=True, descriptor_pool=pool())
        return document

    def _call(self, method: str, **fields: Any) -> Any:
        request, response = _message(f"{method}Request"), _message(f"{method}Response")
        return response.FromString(self._link.call(method, request(**fields).SerializeToString(), self._timeout_s))


def _message(name: str) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(pool().FindMessageTypeByName(f"inference.{name}"))
