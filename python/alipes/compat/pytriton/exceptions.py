"""The exceptions of PyTriton's serving side, by their names there."""

from __future__ import annotations

from alipes.errors import AlipesError

__all__ = [
    "PyTritonBadParameterError",
    "PyTritonError",
    "PyTritonInvalidOperationError",
    "PyTritonModelConfigError",
    "PyTritonRuntimeError",
    "PyTritonUnrecoverableError",
    "PyTritonValidationError",
]


class PyTritonError(AlipesError):
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


class PyTritonValidationError(PyTritonError):
    """A setting, or what an inference function returned, does not fit."""


class PyTritonInvalidOperationError(PyTritonError):
    """A call that is not possible now."""


class PyTritonBadParameterError(PyTritonError):
    """A parameter of a model or a decorator has a value that cannot be used."""


class PyTritonModelConfigError(PyTritonError):
    """A model's configuration cannot be read."""


class PyTritonUnrecoverableError(PyTritonError):
    """Raised by an inference function that cannot go on: its server stops."""


class PyTritonRuntimeError(PyTritonError):
    """An error of no other kind."""
