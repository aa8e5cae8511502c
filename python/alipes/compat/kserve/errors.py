"""Exceptions of the KServe SDK, and what a server answers after each of them.

Scripts match on the texts, so they are the SDK's.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

__all__ = [
    "InferenceError",
    "InvalidInput",
    "ModelMissingError",
    "ModelNotFound",
    "ModelNotReady",
    "NoModelReady",
    "ServerNotLive",
    "ServerNotReady",
    "UnsupportedProtocol",
    "WorkersShouldBeLessThanMaxWorkersError",
    "refusal",
]


class ModelMissingError(Exception):
    """There is no model file."""

    def __init__(self, path: str) -> None:
        """Takes the path."""
        self.path = path

    def __str__(self) -> str:
        """The path."""
        return self.path


class InferenceError(RuntimeError):
    """A model failed; answered with 500."""

    def __init__(self, reason: str | None, status: str | None = None, debug_details: Any = None) -> None:
        """Takes what is said about it."""
        self.reason = reason
        self.status = status
        self.debug_details = debug_details

    def __str__(self) -> str:
        """The reason, behind the status."""
        text = super().__str__() if self.reason is None else self.reason
        return text if self.status is None else f"[{self.status}] {text}"


class _Reasoned(Exception):
    """An exception with its text as `reason`."""

    reason: str

    def __str__(self) -> str:
        """The reason."""
        return self.reason


class InvalidInput(_Reasoned, ValueError):
    """A request cannot be used; answered with 400."""

    def __init__(self, reason: str) -> None:
        """Takes the text."""
        self.reason = reason


class ModelNotFound(_Reasoned):
    """There is no model of the name; answered with 404."""

    def __init__(self, model_name: str | None = None) -> None:
        """Takes the name."""
        self.reason = f"Model with name {model_name} does not exist."


class WorkersShouldBeLessThanMaxWorkersError(_Reasoned):
    """More workers are wanted than there may be."""

    def __init__(self, max_workers: int | None = None) -> None:
        """Takes how many there may be."""
        self.reason = f"Workers cannot be greater than {max_workers}"


class UnsupportedProtocol(_Reasoned):
    """A protocol is not spoken; answered with 501."""

    def __init__(self, protocol_version: str | None = None) -> None:
        """Takes its name."""
        self.reason = f"Unsupported protocol {protocol_version}."


class _NotReady(RuntimeError):
    """Something is not ready; answered with 503."""

    error_msg: str

    def __str__(self) -> str:
        """The text."""
        return self.error_msg


class ModelNotReady(_NotReady):
    """A model is not ready."""

    def __init__(self, model_name: str, detail: str | None = None) -> None:
        """Takes the name, and more to say."""
        self.model_name = model_name
        self.error_msg = _with(f"Model with name {model_name} is not ready.", detail)


class ServerNotReady(_NotReady):
    """The server is not ready."""

    def __init__(self, detail: str | None = None) -> None:
        """Takes more to say."""
        self.error_msg = _with("Server is not ready.", detail)


class ServerNotLive(_NotReady):
    """The server is not live."""

    def __init__(self, detail: str | None = None) -> None:
        """Takes more to say."""
        self.error_msg = _with("Server is not live.", detail)


class NoModelReady(RuntimeError):
    """None of the models that a server is to start with is ready."""

    def __init__(self, models: Sequence[Any], detail: str | None = None) -> None:
        """Takes the models, and more to say."""
        self.models = models
        self.detail = detail

    def __str__(self) -> str:
        """The names of the models."""
        names = [model.name for model in self.models]
        if len(names) == 1:
            return _with(f"Model with name {names[0]} is not ready.", self.detail)
        return _with(f"Models with names {','.join(names)} are not ready.", self.detail)


def _with(text: str, detail: str | None) -> str:
    return f"{text} {detail}" if detail else text


_STATUS: Final[dict[type[BaseException], HTTPStatus]] = {
    InvalidInput: HTTPStatus.BAD_REQUEST,
    InferenceError: HTTPStatus.INTERNAL_SERVER_ERROR,
    ModelNotFound: HTTPStatus.NOT_FOUND,
    ModelNotReady: HTTPStatus.SERVICE_UNAVAILABLE,
    NotImplementedError: HTTPStatus.NOT_IMPLEMENTED,
    UnsupportedProtocol: HTTPStatus.NOT_IMPLEMENTED,
    ServerNotLive: HTTPStatus.SERVICE_UNAVAILABLE,
    ServerNotReady: HTTPStatus.SERVICE_UNAVAILABLE,
}


def refusal(error: BaseException) -> tuple[int, dict[str, Any]]:
    """The status, and the object of the body, of the answer after an exception.

    `HTTPException` of FastAPI counts, wherever it comes from: scripts raise it.
    """
    for kind in type(error).__mro__:
        if (status := _STATUS.get(kind)) is not None:
            return int(status), {"error": str(error)}
        if kind.__name__ == "HTTPException" and isinstance(code := getattr(error, "status_code", None), int):
            return code, {"detail": getattr(error, "detail", str(error))}
    return int(HTTPStatus.INTERNAL_SERVER_ERROR), {"error": f"{type(error).__name__} : {error}"}
