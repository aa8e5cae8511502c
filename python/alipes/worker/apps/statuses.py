"""Errors that a function raises: their status over HTTP, and their code over V2; and what the errors of others are."""

from __future__ import annotations

from typing import Final

from alipes import errors
from alipes._core import TritonError, failure, failure_exception
from alipes.errors import (
    AlreadyExists,
    Cancelled,
    DeadlineExceeded,
    InferError,
    Internal,
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

__all__ = ["error_of_call", "status_of", "text_of", "triton_error"]

_STATUSES: Final[tuple[tuple[type[InferError], int], ...]] = (
    (InvalidArgument, 400),
    (Unauthenticated, 401),
    (PermissionDenied, 403),
    (NotFound, 404),
    (AlreadyExists, 409),
    (TooLarge, 413),
    (Cancelled, 499),
    (Unsupported, 501),
    (NotReady, 503),
    (Overloaded, 503),
    (DeadlineExceeded, 504),
)

_OUR_FAULT: Final = (InvalidArgument, TooLarge)
"""Errors of a called model that say that the call was wrong, which is no fault of the function's caller."""


def status_of(error: BaseException) -> int | None:
    """The status of an error that the function means for its caller; None for one that is a fault of the function."""
    if isinstance(error, Misfit):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), None)


def text_of(error: BaseException) -> str:
    """What the caller reads: the text of an error that is meant for it; else its kind and text, without places."""
    return str(error) if isinstance(error, Misfit | InferError) else f"{type(error).__name__}: {error}"


def triton_error(error: BaseException) -> TritonError:
    """The error of a response to a V2 request."""
    if isinstance(error, Misfit):
        return failure(str(error), InvalidArgument.__name__)
    kind = next((kind for kind, _ in _STATUSES if isinstance(error, kind)), Internal)
    return failure(text_of(error), kind.__name__)


def error_of_call(error: TritonError) -> InferError:
    """What a function is raised at for the error of a model that it called.

    A call that is refused for what it has in it is a fault of the function that makes it: `Internal`, whose caller
    reads a 500. Any other error keeps its kind, and so its status where the function does not catch it.
    """
    kind = getattr(errors, failure_exception(error))
    raised: InferError = (Internal if issubclass(kind, _OUR_FAULT) else kind)(error.message())
    return raised
