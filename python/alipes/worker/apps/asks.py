"""What one request asks of a function, whichever way it came: its arguments, and the response that it gets."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from alipes._core import InferenceResponse, Tensor
from alipes.worker.apps.custom import is_picture, png
from alipes.worker.apps.documents import encode
from alipes.worker.apps.exchange import Request, Response
from alipes.worker.apps.misfit import Misfit
from alipes.worker.apps.plan import BODY, Plan
from alipes.worker.apps.statuses import status_of, text_of, triton_error
from alipes.worker.apps.tensors import argument_of, tensors_of

if TYPE_CHECKING:
    from alipes._core import InferenceRequest
    from alipes.worker.apps.bodies import Bodies

__all__ = ["Ask", "ask_of"]

_METHOD: Final = "alipes.method"
_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"
_PNG: Final = "image/png"


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
    tensors = request.inputs()
    if len(tensors) == 1 and tensors[0].name() == BODY:
        text = request.parameters()
        parameters = json.loads(text) if text else {}
        return _Call(tensors[0], parameters, plan, bodies)
    return _Tensors(request, tensors, plan)


class _Call(Ask):
    """A document, a form or a file, which came over `POST /<name>`, or as the tensor of that name."""

    def __init__(self, tensor: Tensor, parameters: Mapping[str, Any], plan: Plan, bodies: Bodies) -> None:
        self._tensor = tensor
        self._parameters = parameters
        self._plan = plan
        self._bodies = bodies
        self._is_http = _METHOD in parameters

    def read(self) -> None:
        """Reads the arguments.

        Raises:
            Misfit: If the body does not fit.
        """
        body = self._tensor.as_numpy().reshape(-1)[0]
        parameters = self._parameters
        kind, query = str(parameters.get("alipes.content_type", "")), str(parameters.get("alipes.query", ""))
        self.arguments = self._bodies.read(body, kind, query)
        if self._plan.request:
            headers = json.loads(parameters.get("alipes.headers") or "{}")
            method = str(parameters.get(_METHOD, "POST"))
            self.arguments[self._plan.request] = Request(
                headers=headers, query=query, method=method, content_type=kind, body=body
            )

    def response(self, value: Any) -> InferenceResponse:
        """The value as the body: JSON, or a file where it is bytes or a picture."""
        whole = value if isinstance(value, Response) else None
        if whole is not None:
            value = whole.value
        body, kind = _body(value, whole.content_type if whole is not None else "")
        parameters: dict[str, bool | int | str] = {"alipes.status": 200, "alipes.content_type": kind}
        if whole is not None:
            parameters["alipes.status"] = whole.status
            if headers := whole.sent_headers():
                parameters["alipes.headers"] = json.dumps(headers)
        return self._carry(body, parameters)

    def failure(self, error: BaseException) -> InferenceResponse:
        """An error that is meant for the caller has a status of its own; any other is the server's to answer."""
        status = status_of(error)
        if status is None or not self._is_http:
            return super().failure(error)
        return self._carry(encode({"error": text_of(error)}), {"alipes.status": status, "alipes.content_type": _JSON})

    def _carry(self, body: bytes, parameters: Mapping[str, bool | int | str]) -> InferenceResponse:
        array = np.empty(self._tensor.shape() if not self._is_http else 1, object)
        array.fill(body)
        return InferenceResponse([Tensor(BODY, array)], parameters=parameters if self._is_http else None)


class _Tensors(Ask):
    """The tensors that the function's annotations declare."""

    def __init__(self, request: InferenceRequest, tensors: list[Tensor], plan: Plan) -> None:
        self._tensors = {tensor.name(): tensor for tensor in tensors}
        self._wanted = request.requested_output_names()
        self._plan = plan

    def read(self) -> None:
        """Reads the arguments.

        Raises:
            Misfit: If a text is no UTF-8.
        """
        self.arguments = {}
        for one in self._plan.arguments:
            tensor = self._tensors.get(one.name)
            if tensor is not None and one.tensor is not None:
                array = tensor.as_numpy()
                self.rows = len(array) if self._plan.batched else None
                try:
                    self.arguments[one.name] = argument_of(array, one.tensor)
                except Misfit as error:
                    raise error.below(f".{one.name}") from error
        if self._plan.request:
            self.arguments[self._plan.request] = Request()

    def response(self, value: Any) -> InferenceResponse:
        """The value as the declared outputs."""
        return InferenceResponse(tensors_of(value, self._plan, self._wanted))


def _body(value: Any, kind: str) -> tuple[bytes, str]:
    """A value as a body, and its media type."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value), kind or _BYTES
    if any(is_picture(one) for one in type(value).__mro__):
        return png(value), kind or _PNG
    if kind and isinstance(value, str):
        return value.encode(), kind
    return encode(value), kind or _JSON
