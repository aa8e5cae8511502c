"""What one request asks of a function, whichever way it came: its arguments, and the response that it gets."""

from __future__ import annotations

import json
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from alipes._core import InferenceResponse, Tensor, call_response, read_call
from alipes.worker.apps.callers import reading_for
from alipes.worker.apps.custom import is_picture, png
from alipes.worker.apps.exchange import Request, Response
from alipes.worker.apps.forwarded import request_of
from alipes.worker.apps.misfit import MALFORMED, UNFIT, Misfit
from alipes.worker.apps.plan import DOCUMENT, Plan
from alipes.worker.apps.statuses import status_of, text_of, triton_error
from alipes.worker.apps.tensors import argument_of, tensors_of
from alipes.worker.explanations import is_for_prediction
from alipes.worker.failure import log_trace

if TYPE_CHECKING:
    from alipes._core import InferenceRequest

__all__ = ["Ask", "Bodies", "answered", "ask_of", "call_failed", "failed"]

_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"
_PNG: Final = "image/png"

_BUSY: Final = 503
_LATER: Final = json.dumps({"Retry-After": "1"})
"""Headers of an error that says that the same request may succeed later."""

_forms: Final[dict[type[Any], str]] = {}


class Bodies(Protocol):
    """Reads and writes the bodies of calls."""

    def read(self, body: bytes, content_type: str, query: str) -> dict[str, Any]:
        """The arguments that a body holds."""

    def encode(self, value: Any) -> bytes:
        """A value as JSON."""


class Ask(ABC):
    """One request.

    Attributes:
        arguments: The function's arguments; where it takes batches, those of a call are one row, without a batch axis.
        rows: Rows that the request has of a batch; None where it is one row without a batch axis.
    """

    arguments: dict[str, Any]
    rows: int | None = None

    @abstractmethod
    def read(self) -> None:
        """Reads the arguments.

        Raises:
            Misfit: If the request does not fit the function.
        """

    @abstractmethod
    def response(self, value: Any) -> InferenceResponse:
        """The response that carries a value.

        Raises:
            TypeError: If the value cannot be carried.
        """

    def failure(self, error: BaseException) -> InferenceResponse:
        """The response that carries an error."""
        return InferenceResponse(error=triton_error(error))


def ask_of(request: InferenceRequest, plan: Plan, bodies: Bodies) -> Ask:
    """What a request asks for; its arguments are not read yet, so that what does not fit can be answered."""
    call = read_call(request)
    if call is not None:
        return _Call(call, plan, bodies, request)
    return _Tensors(request, plan) if plan.has_tensors else _Document(request, bodies, plan)


class _Call(Ask):
    """A document, a form or a file, which came over `POST /<name>`, or over V1."""

    def __init__(
        self, call: tuple[bytes, str, str, str, str], plan: Plan, bodies: Bodies, request: InferenceRequest
    ) -> None:
        self._call = call
        self._plan = plan
        self._bodies = bodies
        self._request = request

    def read(self) -> None:
        """Reads the arguments.

        Raises:
            Misfit: If the body does not fit.
        """
        body, kind, method, query, headers = self._call
        if self._plan.reads_request_alone:
            self.arguments = {}
        else:
            try:
                with reading_for(self._request.is_cancelled):
                    self.arguments = self._bodies.read(body, kind, query)
            except Misfit as error:
                if error.status == UNFIT and is_for_prediction(self._request):
                    raise Misfit(str(error), status=MALFORMED) from error  # V1 has one status for all of them
                raise
        if self._plan.request:  # most functions do not look, and the headers are not read then
            self.arguments[self._plan.request] = Request(
                headers=json.loads(headers), query=query, method=method, content_type=kind, body=body
            )

    def response(self, value: Any) -> InferenceResponse:
        """The value as the body: JSON, or a file where it is bytes or a picture."""
        return _call_response(value, self._bodies.encode)

    def failure(self, error: BaseException) -> InferenceResponse:
        """An error that is meant for the caller has a status of its own; any other is the server's to answer."""
        return _call_failure(error, self._bodies.encode)


class _Document(Ask):
    """A document in a tensor, for a function that cannot be asked with tensors of its own."""

    def __init__(self, request: InferenceRequest, bodies: Bodies, plan: Plan) -> None:
        self._tensor = request.inputs()[0]
        self._has_left = request.is_cancelled
        self._bodies = bodies
        self._request = plan.request
        self._parameters = request.parameters() if plan.request else ""

    def read(self) -> None:
        """Reads the arguments.

        Raises:
            Misfit: If the document does not fit.
        """
        array = self._tensor.as_numpy()
        if array.size != 1:
            raise Misfit(f"expected one document, got {array.size}", path="")
        with reading_for(self._has_left):
            self.arguments = self._bodies.read(array.reshape(-1)[0], "application/json", "")
        if self._request:
            self.arguments[self._request] = request_of(self._parameters)

    def response(self, value: Any) -> InferenceResponse:
        """The value as a document, or as a file where it is bytes or a picture."""
        whole = value if isinstance(value, Response) else Response(value)
        array = np.empty(self._tensor.shape(), object)
        array.fill(_body(whole.value, whole.content_type, self._bodies.encode)[0])
        return InferenceResponse([Tensor(DOCUMENT, array)])


class _Tensors(Ask):
    """The tensors that the function's annotations declare."""

    def __init__(self, request: InferenceRequest, plan: Plan) -> None:
        self._tensors = {tensor.name(): tensor for tensor in request.inputs()}
        self._wanted = request.requested_output_names()
        self._parameters = request.parameters() if plan.request else ""
        self._plan = plan

    def read(self) -> None:
        """Reads the arguments.

        Raises:
            Misfit: If a text is no UTF-8.
        """
        self.arguments = {}
        for one in self._plan.arguments:
            tensor = self._tensors.get(one.input or one.name)
            if tensor is not None and one.tensor is not None:
                array = tensor.as_numpy()
                self.rows = len(array) if self._plan.batched else None
                try:
                    self.arguments[one.name] = argument_of(array, one.tensor)
                except Misfit as error:
                    raise error.below(f".{one.name}") from error
        if self._plan.request:
            self.arguments[self._plan.request] = request_of(self._parameters)

    def response(self, value: Any) -> InferenceResponse:
        """The value as the declared outputs."""
        return InferenceResponse(tensors_of(value, self._plan, self._wanted))


def answered(value: Any, encode: Callable[[Any], bytes]) -> InferenceResponse:
    """The response to a call whose function has returned; one that cannot be carried is a failure.

    Args:
        value: What the function returned, or the row of it that the caller gets.
        encode: Writes a value as JSON.
    """
    try:
        return _call_response(value, encode)
    except Exception as error:
        return call_failed(error, encode)


def call_failed(error: Exception, encode: Callable[[Any], bytes]) -> InferenceResponse:
    """The response to a call for an error."""
    return failed(error, lambda error: _call_failure(error, encode))


def failed(error: Exception, failure: Callable[[BaseException], InferenceResponse]) -> InferenceResponse:
    """The response for an error. One that is the function's own fault goes into the log with its places.

    Args:
        error: The error.
        failure: Makes the response.
    """
    if status_of(error) is None:
        log_trace(error)
    response = failure(error)
    traceback.clear_frames(error.__traceback__)  # views of the request in them would keep its memory
    return response


def _call_response(value: Any, encode: Callable[[Any], bytes]) -> InferenceResponse:
    if not isinstance(value, Response):
        body, kind = _body(value, "", encode)
        return call_response(body, 200, kind)
    body, kind = _body(value.value, value.content_type, encode)
    headers = value.sent_headers()
    return call_response(body, value.status, kind, json.dumps(headers) if headers else "")


def _call_failure(error: BaseException, encode: Callable[[Any], bytes]) -> InferenceResponse:
    status = status_of(error)
    if status is None:
        return InferenceResponse(error=triton_error(error))
    return call_response(encode({"error": text_of(error)}), status, _JSON, _LATER if status == _BUSY else "")


def _body(value: Any, kind: str, encode: Callable[[Any], bytes]) -> tuple[bytes, str]:
    """A value as a body, and its media type."""
    form = _form(type(value))
    if form == _JSON:
        if kind and isinstance(value, str):
            return value.encode(), kind
        return encode(value), kind or _JSON
    return (bytes(value) if form == _BYTES else png(value)), kind or form


def _form(kind: type[Any]) -> str:
    """The media type of values of a type; worked out once for each type."""
    if (found := _forms.get(kind)) is None:
        found = _forms[kind] = _form_of(kind)
    return found


def _form_of(kind: type[Any]) -> str:
    if issubclass(kind, bytes | bytearray | memoryview):
        return _BYTES
    return _PNG if any(is_picture(one) for one in kind.__mro__) else _JSON
