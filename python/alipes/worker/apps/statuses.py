"""Errors that a function raises: their status over HTTP, and their code over V2."""

from __future__ import annotations

from typing import Final

from alipes._core import TritonError
from alipes.errors import (
    AlreadyExists,
    Cancelled,
    DeadlineExceeded,
    InferError,
    InvalidArgument,
    NotFound,
    NotReady,
    Overloaded,
    PermissionDenied,
    TooLarge,
    Unauthenticated,
    Unsupported,
)
from alipes.worker.apps.misfit import Misfit

__all__ = ["status_of", "text_of", "triton_error"]

_TABLE: Final[tuple[tuple[type[InferError], int, int], ...]] = (
    (InvalidArgument, 400, TritonError.INVALID_ARG),
    (Unauthenticated, 401, TritonError.INVALID_ARG),
    (PermissionDenied, 403, TritonError.INVALID_ARG),
    (NotFound, 404, TritonError.NOT_FOUND),
    (AlreadyExists, 409, TritonError.ALREADY_EXISTS),
    (TooLarge, 413, TritonError.INVALID_ARG),
    (Cancelled, 499, TritonError.CANCELLED),
    (Unsupported, 501, TritonError.UNSUPPORTED),
    (NotReady, 503, TritonError.UNAVAILABLE),
    (Overloaded, 503, TritonError.UNAVAILABLE),
    (DeadlineExceeded, 504, TritonError.UNAVAILABLE),
)


def status_of(error: BaseException) -> int | None:
    """The status of an error that the function means for its caller; None for one that is a fault of the function."""
    if isinstance(error, Misfit):
        return error.status
    return next((status for kind, status, _ in _TABLE if isinstance(error, kind)), None)


def text_of(error: BaseException) -> str:
    """What the caller reads: the text of an error that is meant for it; else its kind and text, without places."""
    return str(error) if isinstance(error, Misfit | InferError) else f"{type(error).__name__}: {error}"


def triton_error(error: BaseException) -> TritonError:
    """The error of a response to a V2 request."""
    if isinstance(error, Misfit):
        return TritonError(str(error), TritonError.INVALID_ARG)
    code = next((code for kind, _, code in _TABLE if isinstance(error, kind)), TritonError.INTERNAL)
    return TritonError(text_of(error), code)
