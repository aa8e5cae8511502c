"""The exceptions of PyTriton's clients, by their names there."""

from __future__ import annotations

from alipes.errors import AlipesError

__all__ = [
    "PyTritonClientClosedError",
    "PyTritonClientError",
    "PyTritonClientInferenceServerError",
    "PyTritonClientInvalidUrlError",
    "PyTritonClientModelDoesntSupportBatchingError",
    "PyTritonClientModelUnavailableError",
    "PyTritonClientQueueFullError",
    "PyTritonClientTimeoutError",
    "PyTritonClientValueError",
]


class PyTritonClientError(AlipesError):
    """The root of them."""

    def __init__(self, message: str) -> None:
        """Takes the message."""
        super().__init__(message)
        self._message = message

    def __str__(self) -> str:
        """The message."""
        return self._message

    @property
    def message(self) -> str:
        """The message."""
        return self._message


class PyTritonClientValueError(PyTritonClientError):
    """An argument has a value that cannot be used."""


class PyTritonClientInvalidUrlError(PyTritonClientValueError):
    """The address of the server cannot be read."""


class PyTritonClientTimeoutError(PyTritonClientError):
    """The server, the model or the answer was not there in time."""


class PyTritonClientModelUnavailableError(PyTritonClientError):
    """The server has no such model or version."""


class PyTritonClientClosedError(PyTritonClientError):
    """The client is closed."""


class PyTritonClientModelDoesntSupportBatchingError(PyTritonClientError):
    """A batch was sent to a model without a batch dimension."""


class PyTritonClientInferenceServerError(PyTritonClientError):
    """The inference function or the server failed."""


class PyTritonClientQueueFullError(PyTritonClientError):
    """The queue of a client has no place for another request."""
