"""Messages of the V2 protocol over gRPC: `kserve.protocol.grpc.grpc_predict_v2_pb2`, from the project's own files.

They lie in a pool of their own, so that a process may have those of other packages too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["MESSAGES", "message_class"]

MESSAGES = (
    "InferParameter",
    "InferTensorContents",
    "ModelInferRequest",
    "ModelInferResponse",
    "ModelMetadataRequest",
    "ModelMetadataResponse",
    "ModelReadyRequest",
    "ModelReadyResponse",
    "RepositoryModelLoadRequest",
    "RepositoryModelLoadResponse",
    "RepositoryModelUnloadRequest",
    "RepositoryModelUnloadResponse",
    "ServerLiveRequest",
    "ServerLiveResponse",
    "ServerMetadataRequest",
    "ServerMetadataResponse",
    "ServerReadyRequest",
    "ServerReadyResponse",
)


@cache
def message_class(name: str) -> Any:
    """The class of a message, by its name in the protocol."""
    from google.protobuf.message_factory import GetMessageClass  # few scripts speak gRPC

    from alipes.config.schema import pool

    messages = pool()
    if name == "InferParameter":
        return GetMessageClass(messages.FindMessageTypeByName("inference.InferParameter"))
    return GetMessageClass(messages.FindMessageTypeByName(f"inference.{name}"))


def __getattr__(name: str) -> Any:
    """A message's class."""
    if name in MESSAGES:
        return message_class(name)
    raise AttributeError(f"module {__name__!r} has no name {name!r}")
