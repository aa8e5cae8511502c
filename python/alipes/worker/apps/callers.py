"""Who waits for what this process computes: whether that caller has left, and the trace that its request is part of.

What reads a large argument looks between two parts of it, so that a caller that has left costs no more time. What calls
a predictor withdraws the call when the caller leaves.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from alipes.errors import Cancelled

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceTrace

__all__ = ["CallersFile", "answering", "check_caller", "has_left", "reading_for", "trace", "trace_headers"]

_TRACE_HEADERS: Final = ("traceparent", "tracestate")
"""Source: W3C Trace Context."""

_HEADERS: Final = "alipes.headers"

_current: ContextVar[Callable[[], bool] | None] = ContextVar("_current", default=None)
_answered: ContextVar[Sequence[InferenceRequest]] = ContextVar("_answered", default=())


class reading_for:
    """What is read within is read for a caller. As a generator it would cost each request twice as much."""

    __slots__ = ("_has_left", "_token")

    def __init__(self, has_left: Callable[[], bool]) -> None:
        """Takes what says whether that caller has left."""
        self._has_left = has_left

    def __enter__(self) -> None:
        """From now on."""
        self._token = _current.set(self._has_left)

    def __exit__(self, *_: object) -> None:
        """Up to now."""
        _current.reset(self._token)


class answering:
    """What is computed within answers these requests: one, or those of a batch."""

    __slots__ = ("_requests", "_token")

    def __init__(self, requests: Sequence[InferenceRequest]) -> None:
        """Takes the requests, which are held until the end."""
        self._requests = requests

    def __enter__(self) -> None:
        """From now on."""
        self._token = _answered.set(self._requests)

    def __exit__(self, *_: object) -> None:
        """Up to now."""
        _answered.reset(self._token)


def has_left() -> bool:
    """Whether all callers that wait for what is being computed have left; false where nobody is known to wait."""
    requests = _answered.get()
    return bool(requests) and all(request.is_cancelled() for request in requests)


def trace() -> InferenceTrace | None:
    """The trace of what is being computed, for calls of other models of the server; of a batch, its first request's."""
    requests = _answered.get()
    return requests[0].trace() if requests else None


def trace_headers() -> dict[str, str]:
    """The headers that continue the trace at another server; none where the request has no trace.

    The server's own span comes first, where it traces the request; else the caller's headers, where the function sees
    them: of a call over V1, and where the server forwards them to models.
    """
    requests = _answered.get()
    if not requests:
        return {}
    context = requests[0].trace().get_context()
    if context and (found := json.loads(context)):
        return dict(found)
    parameters = requests[0].parameters()
    if _TRACE_HEADERS[0] not in parameters.lower():  # most parameters are not read
        return {}
    by_name = {name.lower(): value for name, value in json.loads(parameters).items()}
    if (headers := by_name.get(_HEADERS)) is not None:  # a call of V1 brings all of them
        by_name = json.loads(headers)
    return {name: by_name[name] for name in _TRACE_HEADERS if isinstance(by_name.get(name), str)}


def check_caller() -> None:
    """Ends what is being read for a caller that has left; does nothing where nothing is read for one.

    Raises:
        Cancelled: The caller has left.
    """
    has_left = _current.get()
    if has_left is not None and has_left():
        raise Cancelled("the caller has left")


class CallersFile(io.BytesIO):
    """Bytes that a caller has sent, as a file that readers take in parts; a caller that has left ends the reading."""

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes.

        Raises:
            Cancelled: The caller has left.
        """
        check_caller()
        return super().read(size)
