"""What the caller of a function reads where the predictor behind it fails."""

from __future__ import annotations

from typing import Final

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
    PermissionDenied,
    TooLarge,
    TransportError,
    Unauthenticated,
)

__all__ = ["REFUSED", "failure_of"]

REFUSED: Final = (InvalidArgument, TooLarge, Unauthenticated, PermissionDenied)
"""The call itself is at fault, which the function has made: another predictor would refuse it, too."""

_MEANINGS: Final[tuple[tuple[tuple[type[AlipesError], ...], type[InferError], str], ...]] = (
    ((TransportError,), NotReady, "does not answer"),
    ((NotFound,), NotReady, "is not there"),
    ((Cancelled,), NotReady, "ended the call"),
    ((NotReady,), NotReady, "is not ready"),
    ((Overloaded,), Overloaded, "is overloaded"),
    (REFUSED, Internal, "refuses the call"),
)
"""What the call ended with -> what its caller reads, and how."""


def failure_of(error: AlipesError, model: str, where: str, limit_s: float | None) -> InferError:
    """The error that a call of a predictor raises.

    A predictor that is away is no fault of the function, so its caller reads 503, and may come back. A call that is
    refused for what it says is one, as with `alipes.call`: the caller reads 500.

    Args:
        error: What the call ended with.
        model: The predictor's model.
        where: Its server, for people.
        limit_s: The time that the call had, in seconds.
    """
    text = f"predictor '{model}' at {where}"
    if isinstance(error, DeadlineExceeded):
        limit = "in time" if limit_s is None else f"within {limit_s:g} s"
        return DeadlineExceeded(f"{text} did not answer {limit}", model=model)
    for kinds, made, words in _MEANINGS:
        if isinstance(error, kinds):
            return made(f"{text} {words}: {error}", model=model)
    return Internal(f"{text} failed: {error}", model=model)
