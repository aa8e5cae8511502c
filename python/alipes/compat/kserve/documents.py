"""JSON of V1 and V2, and the bodies of the V2 protocol as documents: `kserve.protocol.rest.v2_datamodels`."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from alipes.compat.kserve.errors import InvalidInput

__all__ = [
    "InferenceRequest",
    "InferenceResponse",
    "RequestInput",
    "RequestOutput",
    "ResponseOutput",
    "dump",
    "inference_request",
    "parse",
]


class RequestInput(msgspec.Struct):
    """An input of a request, in JSON."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]
    parameters: dict[str, Any] | None = None


class RequestOutput(msgspec.Struct):
    """An output that a request asks for, in JSON."""

    name: str
    parameters: dict[str, Any] | None = None


class InferenceRequest(msgspec.Struct):
    """A request without bytes behind its JSON."""

    inputs: list[RequestInput]
    id: str | None = None
    parameters: dict[str, Any] | None = None
    outputs: list[RequestOutput] | None = None


class ResponseOutput(msgspec.Struct):
    """An output of a response, in JSON."""

    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, Any] | None = None
    data: list[Any] = msgspec.field(default_factory=list)


class InferenceResponse(msgspec.Struct, kw_only=True):
    """A response without bytes behind its JSON."""

    model_name: str
    model_version: str | None = None
    id: str
    parameters: dict[str, Any] | None = None
    outputs: list[ResponseOutput]


def inference_request(body: bytes) -> InferenceRequest:
    """The request that a body is.

    Raises:
        InvalidInput: If it is no JSON, or no such request.
    """
    try:
        return msgspec.json.decode(body, type=InferenceRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"Unrecognized request format: {error}") from None


def parse(text: bytes | str) -> Any:
    """What a JSON text says.

    Raises:
        InvalidInput: If it is none.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"Unrecognized request format: {error}") from None


def dump(value: Any) -> bytes:
    """A value as JSON, with arrays and numbers of numpy as what they hold."""
    return msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"Type is not JSON serializable: {type(value).__name__}")
