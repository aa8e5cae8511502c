"""Our clients' errors in PyTriton's words."""

from __future__ import annotations

import sys
from typing import Final

from alipes.compat.pytriton.client.exceptions import (
    PyTritonClientError,
    PyTritonClientInferenceServerError,
    PyTritonClientTimeoutError,
)
from alipes.errors import AlipesError, DeadlineExceeded, TransportError

__all__ = ["is_timeout", "no_server", "of_async_call", "of_call"]

_IN_QUEUE: Final = "Request timeout expired"
"""What a server says of a request that waited too long in its queue: its own refusal, not the end of a wait here."""

_ERRORS_OF_CLIENTS: Final = (
    ("tritonclient.utils", "InferenceServerException"),
    ("grpc._cython.cygrpc", "UsageError"),
)
"""What tritonclient raises while there is no server, beside errors of Python: they exist once it is imported."""


def no_server() -> tuple[type[Exception], ...]:
    """What our clients and those of tritonclient raise while there is no server, or none yet."""
    theirs = (getattr(sys.modules.get(module), name, None) for module, name in _ERRORS_OF_CLIENTS)
    return AlipesError, OSError, RuntimeError, *(error for error in theirs if error is not None)


def is_timeout(error: AlipesError) -> bool:
    """Whether this side has waited too long."""
    return isinstance(error, DeadlineExceeded) and _IN_QUEUE not in str(error)


def of_call(error: AlipesError, scheme: str, limit_s: float) -> PyTritonClientError:
    """The error of a call that waited.

    Over HTTP a connection that breaks is a time-out, too: so it is in PyTriton.
    """
    if scheme == "http" and (is_timeout(error) or isinstance(error, TransportError)):
        text = "timed out" if is_timeout(error) else str(error)
        return PyTritonClientTimeoutError(
            f"Timeout occurred during inference request. Timeout: {limit_s} s Message: {text}"
        )
    if is_timeout(error):
        return PyTritonClientTimeoutError(
            f"Timeout occurred during inference request. Timeout: {limit_s} s. Message: Deadline Exceeded"
        )
    return PyTritonClientInferenceServerError(f"Error occurred during inference request. Message: {error}")


def of_async_call(error: AlipesError, scheme: str, model: str) -> PyTritonClientError:
    """The error of a call that was awaited."""
    if is_timeout(error):
        if scheme == "http":
            return PyTritonClientTimeoutError(f"Timeout exceeded while running inference for {model}")
        return PyTritonClientTimeoutError("Error occurred on Triton Inference Server side:\n Deadline Exceeded")
    return PyTritonClientInferenceServerError(f"Error occurred on Triton Inference Server side:\n {error}")
