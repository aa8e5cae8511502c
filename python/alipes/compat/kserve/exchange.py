"""One request to a model of the SDK, in the form in which it came, and its answer in the same: V1, V2, V2 over gRPC."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from alipes._core import InferenceRequest, InferenceResponse, TritonError, call_response, read_whole_call
from alipes.compat.kserve.cloud_events import (
    STRUCTURED,
    create_response_cloudevent,
    is_binary,
    read_binary,
    read_json,
)
from alipes.compat.kserve.constants import INFERENCE_CONTENT_LENGTH_HEADER
from alipes.compat.kserve.documents import InferenceResponse as ResponseDocument
from alipes.compat.kserve.documents import dump, inference_request
from alipes.compat.kserve.errors import InvalidInput, refusal
from alipes.compat.kserve.infer_request import InferRequest
from alipes.compat.kserve.infer_response import InferResponse
from alipes.compat.kserve.logging import logger
from alipes.compat.kserve.messages import message_class
from alipes.compat.kserve.model import InferenceVerb

__all__ = ["Exchange", "collected", "piece_of", "refused_tensors"]

_JSON: Final = ("application/json", STRUCTURED, "application/ld+json", "application/octet-stream")
_GRPC: Final = "/inference.GRPCInferenceService/"
_NOT_FOUND: Final = 404
# The server sets these itself.
_OF_THE_SERVER: Final = frozenset(
    {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding", "upgrade", "content-encoding"}
)


@dataclass(slots=True, eq=False)
class Exchange:
    """A request.

    Attributes:
        model_name: The name by which it asked for its model.
        path: Its path; the method's over gRPC.
        headers: Its headers, with names in small letters.
        body: Its body; over gRPC the message.
        attributes: Attributes of the event that it is; empty where it is none.
    """

    model_name: str
    path: str
    headers: dict[str, str]
    body: bytes
    attributes: dict[str, Any]

    @classmethod
    def of(cls, request: InferenceRequest, model_name: str) -> Exchange | None:
        """Reads a request of the server; None where it came by another way, such as `generate`, with tensors."""
        call = read_whole_call(request)
        if call is None:
            return None
        body, path, headers = call
        return cls(model_name, path, headers, body, {})

    @property
    def is_grpc(self) -> bool:
        """Whether it came over gRPC."""
        return self.path.startswith(_GRPC)

    @property
    def verb(self) -> InferenceVerb | None:
        """What it asks; None where there is no such path."""
        if self.is_grpc or self.path.endswith(("/infer", ":predict")):
            return InferenceVerb.PREDICT
        return InferenceVerb.EXPLAIN if self.path.endswith(":explain") else None

    @property
    def is_v1(self) -> bool:
        """Whether it came over V1."""
        return self.path.endswith((":predict", ":explain"))

    def payload(self) -> Any:
        """What the model gets: the object of V1, or an `InferRequest`; bytes where a body is no JSON and says so.

        Raises:
            InvalidInput: If the body is not what it has to be.
        """
        if self.is_grpc:
            return self._message()
        if not self.is_v1:
            return self._v2()
        if is_binary(self.headers):
            data, self.attributes = read_binary(self.body, self.headers)
            return data
        content_type = self.headers.get("content-type")
        if content_type is not None and content_type.split(";", 1)[0].strip() not in _JSON:
            return self.body
        data, self.attributes = read_json(self.body)
        return data

    def _v2(self) -> InferRequest:
        length = self.headers.get(INFERENCE_CONTENT_LENGTH_HEADER)
        if length is not None:
            if not (length.isascii() and length.isdigit() and int(length) <= len(self.body)):
                raise InvalidInput(f"'{INFERENCE_CONTENT_LENGTH_HEADER}' is no number of bytes of the body: {length!r}")
            return InferRequest.from_bytes(self.body, int(length), self.model_name)
        if self.headers.get("content-type", "").startswith("application/octet-stream"):
            raise InvalidInput(f"received byte inputs, but the'{INFERENCE_CONTENT_LENGTH_HEADER}' header is missing.")
        return InferRequest.from_inference_request(inference_request(self.body), self.model_name)

    def _message(self) -> InferRequest:
        message = message_class("ModelInferRequest").FromString(self.body)
        raw, name = len(message.raw_input_contents), message.model_name
        if raw not in (0, len(message.inputs)):
            raise InvalidInput(
                f"the number of inputs ({len(message.inputs)}) does not match the expected number of "
                f"raw input contents ({raw}) for model '{name}'."
            )
        for one in message.inputs if raw else ():
            if one.HasField("contents"):
                raise InvalidInput(
                    "contents field must not be specified when using raw_input_contents for input "
                    f"'{one.name}' for model '{name}'"
                )
        return InferRequest.from_grpc(message)

    def answer(self, result: Any, headers: dict[str, str]) -> InferenceResponse:
        """The answer with what the model returned.

        Args:
            result: What it returned.
            headers: Headers that it gave.

        Raises:
            InvalidInput: If the result cannot be sent.
        """
        if self.is_grpc:
            return call_response(_message_of(result).SerializeToString(), 200, "")
        sent = {name.lower(): str(value) for name, value in headers.items()} if headers else {}
        if isinstance(result, InferResponse):
            result, json_length = result.to_rest()
            if json_length is not None:
                sent[INFERENCE_CONTENT_LENGTH_HEADER] = str(json_length)
                sent["content-type"] = "application/octet-stream"
        if self.is_v1:
            return self._of_v1(result, sent)
        if not isinstance(result, (bytes, str)):
            result = dump(msgspec.convert(result, ResponseDocument))
        return _response(200, result, sent)

    def _of_v1(self, result: Any, headers: dict[str, str]) -> InferenceResponse:
        is_event = is_binary(self.headers)
        if is_event or self.headers.get("content-type") == STRUCTURED:
            more, result = create_response_cloudevent(self.model_name, result, self.attributes, is_event)
            headers |= {"content-type": "application/json"} | more
        return _response(200, result, headers)

    def refused(self, error: BaseException) -> InferenceResponse:
        """The answer after an exception, which is logged."""
        logger.error("Exception:", exc_info=error)
        status, document = refusal(error)
        if self.is_grpc:
            text = next(iter(document.values()))
            return call_response(str(text).encode(), status, "text/plain")
        return _response(status, document, {})

    def unknown(self) -> InferenceResponse:
        """The answer where there is no such path."""
        return _response(_NOT_FOUND, {"detail": "Not Found"}, {})


def refused_tensors(model_name: str) -> InferenceResponse:
    """The response to a request that is none of V1, V2 and gRPC."""
    text = f"model '{model_name}' takes requests of V1 and V2 alone"
    return InferenceResponse(error=TritonError(text, TritonError.UNSUPPORTED))


def piece_of(piece: Any, more: bool) -> InferenceResponse:
    """A response with a piece of a body.

    Args:
        piece: Bytes or a text.
        more: Whether it is the first, and others may follow.
    """
    return call_response(piece if isinstance(piece, bytes) else piece.encode(), 200, "", "", more)


async def collected(pieces: AsyncIterator[Any]) -> bytes:
    """Pieces, joined."""
    return b"".join([piece.encode() if isinstance(piece, str) else piece async for piece in pieces])


def _message_of(result: Any) -> Any:
    """A message of gRPC with a result."""
    if isinstance(result, InferResponse):
        return result.to_grpc()
    if isinstance(result, dict):
        names = ("id", "model_name", "outputs")
        return message_class("ModelInferResponse")(**{name: result[name] for name in names})
    return result


def _response(status: int, result: Any, headers: dict[str, str]) -> InferenceResponse:
    if not headers and not isinstance(result, (str, bytes)):
        return call_response(dump(result), status)
    body = result.encode() if isinstance(result, str) else result if isinstance(result, bytes) else dump(result)
    plain = "text/plain; charset=utf-8" if isinstance(result, str) else ""
    content_type = headers.pop("content-type", plain if isinstance(result, (str, bytes)) else "application/json")
    more = {name: value for name, value in headers.items() if name not in _OF_THE_SERVER}
    return call_response(body, status, content_type, json.dumps(more) if more else "")
