"""Messages of the gRPC service for control calls, made from the project's own proto files.

Imports protobuf; clients import this module with their first gRPC control call.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from alipes.config.schema import pool

__all__ = ["decode_response", "encode_request"]


def encode_request(method: str, fields: Mapping[str, Any]) -> bytes:
    """The serialized request of a method."""
    encoded: bytes = _message_class(f"{method}Request")(**fields).SerializeToString()
    return encoded


def decode_response(method: str, body: bytes) -> Any:
    """The response message of a method."""
    return _message_class(f"{method}Response").FromString(body)


@cache
def _message_class(name: str) -> Any:
    return GetMessageClass(pool().FindMessageTypeByName(f"inference.{name}"))
