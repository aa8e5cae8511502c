"""A server's control calls over grpcio, with the messages of the project's own proto file."""

from __future__ import annotations

from typing import Any, Final

from alipes import _core
from alipes.client.inference.failures import of_status
from alipes.client.inference.signature import Document
from alipes.config.schema import pool

__all__ = ["GrpcCalls", "channel", "message"]

_SERVICE: Final = "/inference.GRPCInferenceService/"


def message(name: str) -> Any:
    """The class of a message of the service."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(pool().FindMessageTypeByName(f"inference.{name}"))


def channel(address: str) -> Any:
    """A connection of its own: it ends when it is closed, whoever else talks to the same server."""
    import grpc  # type: ignore[import-untyped]

    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
    ]
    return grpc.insecure_channel(address, options=options)


class GrpcCalls:
    """The calls of one server."""

    def __init__(self, address: str, timeout_s: float) -> None:
        """Connects with the first call, to `host:port`."""
        native = getattr(_core, "ClientLink", None)
        self._link = None if native is None else native(address, "grpc", timeout_s)
        self._channel = channel(address) if native is None else None
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
        if self._channel is not None:
            self._channel.close()
        if self._link is not None:
            self._link.close()

    def _document(self, answer: Any) -> Document:
        from google.protobuf.json_format import MessageToDict

        document: Document = MessageToDict(answer, preserving_proto_field_name=True, descriptor_pool=pool())
        return document

    def _call(self, method: str, **fields: Any) -> Any:
        request, response = message(f"{method}Request"), message(f"{method}Response")
        if self._link is not None:
            sent = request(**fields).SerializeToString()
            return response.FromString(self._link.call(method, sent, self._timeout_s))
        import grpc

        assert self._channel is not None
        call = self._channel.unary_unary(
            _SERVICE + method, request_serializer=request.SerializeToString, response_deserializer=response.FromString
        )
        try:
            return call(request(**fields), timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise of_status(error.code().name, error.details()) from error
