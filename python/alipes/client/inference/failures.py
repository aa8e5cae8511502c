"""Errors of a server as exceptions that a caller can act on. On a stream a server sends texts alone."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from alipes import errors
from alipes._core import error_codes
from alipes.client.backoff import NOT_BEGUN
from alipes.errors import (
    AlipesError,
    Cancelled,
    DeadlineExceeded,
    InferError,
    Internal,
    InvalidArgument,
    NotFound,
    NotReady,
    Overloaded,
    TlsError,
    TransportError,
    Unsupported,
)

__all__ = ["LOST_STATE", "may_repeat", "of_status", "of_text"]

LOST_STATE: Final = re.compile(r"must specify the START flag")
"""What a server says to an update of a sequence that it does not know: it idled, or the server is a new one."""

_TEXTS: Final[tuple[tuple[re.Pattern[str], type[InferError]], ...]] = (
    (re.compile(r"[Ee]xceeds maximum queue size|request queue is full|[Oo]verloaded|too many"), Overloaded),
    (re.compile(r"[Tt]imeout expired|timeout of the corresponding sequence|[Dd]eadline"), DeadlineExceeded),
    (re.compile(r"is not at ready state"), NotReady),
    (re.compile(r"unknown model|is not found|version .* is not available"), NotFound),
    (re.compile(r"is not ready|no available versions|unloading|shutting down|[Uu]navailable"), NotReady),
    (re.compile(r"[Cc]ancelled"), Cancelled),
    (re.compile(r"not supported|[Uu]nsupported|not implemented"), Unsupported),
    (re.compile(r"START flag|correlation ID|[Uu]nexpected|expected|expects|shape|missing|invalid"), InvalidArgument),
)
"""Words of a text, and the kind of error that it is of; the first that fits counts."""

_NO_ANSWER: Final = frozenset({"OK", "UNKNOWN", "UNAVAILABLE"})
"""Statuses of a stream that broke off: the connection failed rather than a request."""


@cache
def _classes() -> dict[str, type[InferError]]:
    """The exception of each gRPC status; where codes share a status, that of the first."""
    classes: dict[str, type[InferError]] = {}
    for row in error_codes():
        classes.setdefault(row.grpc_name, getattr(errors, row.exception))
    return classes


def of_text(text: str, model: str, request_id: str) -> InferError:
    """The exception for the text of an error on a stream."""
    kind = next((kind for pattern, kind in _TEXTS if pattern.search(text)), Internal)
    return kind(text, model=model, request_id=request_id)


def of_status(code: str, text: str) -> AlipesError:
    """The exception for a call's status."""
    kind = None if code in _NO_ANSWER else _classes().get(code)
    return TransportError(f"{code}: {text}") if kind is None else kind(text)


def may_repeat(error: AlipesError) -> bool:
    """Whether a request that belongs to no sequence may be sent again after a while."""
    return isinstance(error, (*NOT_BEGUN, TransportError)) and not isinstance(error, TlsError)
