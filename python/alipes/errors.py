"""Every exception that alipes raises on purpose, as one tree that a caller can act on.

The message of an exception is for people and may change; its class, and `code` where there is one, are for programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

__all__ = [
    "AlipesError",
    "AlreadyExists",
    "BatchError",
    "Cancelled",
    "CloudError",
    "CloudTimeout",
    "ConfigError",
    "DeadlineExceeded",
    "ExportError",
    "InferError",
    "Internal",
    "InvalidArgument",
    "ModelLoadError",
    "MonitorError",
    "NoExporter",
    "NotFound",
    "NotOffered",
    "NotReady",
    "Overloaded",
    "PermissionDenied",
    "RepositoryError",
    "RepositoryUseError",
    "ServeError",
    "ServeTimeout",
    "ServerStartError",
    "TlsError",
    "TooLarge",
    "TransportError",
    "Unauthenticated",
    "Unsupported",
]


@cache
def _word(triton_name: str) -> str:
    """Triton's word for a code of its error enumeration, such as `Invalid argument`."""
    from alipes import _core  # on use: importing the exceptions stays cheap

    return next(row.word for row in _core.error_codes() if row.triton_name == triton_name)


class AlipesError(Exception):
    """The root: catches whatever alipes raises on purpose."""


class ConfigError(AlipesError, ValueError):
    """A flag, a configuration file or an override says something that cannot be done.

    Attributes:
        path: The file, where there is one.
        line: Line in the file, counted from 1.
        key: The flag or the dotted field that is at fault.
        hint: What to try instead.
        code: Triton's code for it, `INVALID_ARG` unless said otherwise.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        line: int | None = None,
        key: str | None = None,
        hint: str | None = None,
        code: str = "INVALID_ARG",
    ) -> None:
        """Takes the message and what is known of its cause."""
        super().__init__(message)
        self.path = None if path is None else Path(path)
        self.line = line
        self.key = key
        self.hint = hint
        self.code = code

    @property
    def reason(self) -> str:
        """The message with the word of its code in front, as an unavailable version shows it."""
        return f"{_word(self.code)}: {self}"

    def explain(self) -> str:
        """The message for a person: with its place in front, unless it names the file itself, and the hint behind."""
        text = f"{self} ({self.hint})" if self.hint else str(self)
        if self.path is None or str(self.path) in text:
            return text
        place = [str(part) for part in (self.path, self.line) if part is not None]
        return f"{':'.join(place)}: {text}"


class RepositoryError(AlipesError):
    """A model repository, or a model in it, cannot be read or found."""

    def __init__(
        self, message: str, *, model: str | None = None, version: int | None = None, reason: str | None = None
    ) -> None:
        """Takes the message and what is known of its cause."""
        super().__init__(message)
        self.model = model
        self.version = version
        self.reason = reason if reason is not None else message


class RepositoryUseError(RepositoryError, ValueError):
    """A call that a repository cannot fulfil: a name is in use or unknown, or another process was quicker."""


class ExportError(AlipesError, ValueError):
    """A model cannot be written to a repository as it was asked for; nothing of it was left there."""


class NoExporter(ExportError, TypeError):
    """Nothing here knows how to write this kind of object for this platform."""


class ModelLoadError(AlipesError):
    """A model version could not be loaded by its backend.

    Attributes:
        model: Name of the model.
        version: Version of the model.
        backend: The backend that tried.
        cause: What the backend said, where that differs from the message.
        code: Triton's code for it, `INTERNAL` unless said otherwise.
        private: Parts of the message that clients do not see, such as where an interpreter lies, each with what stands
            for it.
    """

    def __init__(
        self,
        message: str,
        *,
        model: str | None = None,
        version: int | None = None,
        backend: str | None = None,
        cause: str | None = None,
        code: str = "INTERNAL",
    ) -> None:
        """Takes the message and what is known of its cause."""
        super().__init__(message)
        self.model = model
        self.version = version
        self.backend = backend
        self.cause = cause
        self.code = code
        self.private: dict[str, str] = {}

    def hiding(self, private: Mapping[str, str]) -> Self:
        """Adds parts of the message that clients do not see; gives this error back."""
        self.private |= private
        return self

    @property
    def reason(self) -> str:
        """The message with the word of its code in front, as an unavailable version shows it."""
        return f"{_word(self.code)}: {self}"


class ServerStartError(AlipesError):
    """The server cannot start: a port is in use, an address is not ours, a model must load and does not."""


class NotOffered(AlipesError, NotImplementedError):
    """A name that scripts may import has nothing behind it here; the message says what to do instead."""


class ServeError(ServerStartError, ValueError):
    """A server that a script asked for cannot be started, or ended before it was ready.

    Attributes:
        log: The last lines of what the server wrote, where it was started.
    """

    log: str = ""


class ServeTimeout(AlipesError, TimeoutError, RuntimeError):
    """A server was not ready in the time that a script gave it; it may still become so."""


class MonitorError(AlipesError, ValueError):
    """What servers do cannot be watched or recorded as it was asked for."""


class BatchError(AlipesError, RuntimeError):
    """A batch run cannot go on. What is done stays, and the same call goes on with the rest."""


class CloudError(AlipesError, RuntimeError):
    """A cluster or a cloud refuses something, or what was made there cannot become ready.

    Attributes:
        reason: Kubernetes' or the cloud's own name for the reason, such as `ImagePullBackOff`; empty if there is none.
    """

    def __init__(self, message: str, *, reason: str = "") -> None:
        """Takes the message, and the name of the reason."""
        super().__init__(message)
        self.reason = reason


class CloudTimeout(CloudError, TimeoutError):
    """What was made in a cluster or a cloud is not ready in the time that the caller allows; it may still become so."""


class TransportError(AlipesError, RuntimeError):
    """The connection failed rather than the request: connect, read timeout, or a broken protocol.

    Attributes:
        reached: Whether the server may have had the request. False: nothing was sent, so it can be asked again.
    """

    reached: bool = True


class TlsError(TransportError):
    """Client and server do not agree on an encrypted connection: whose certificate is at fault, the message says.

    Nothing was asked of the server, and to try again without a change is in vain.
    """

    reached: bool = False


class InferError(AlipesError, RuntimeError):
    """One request was not answered.

    Attributes:
        code: Stable name of the kind, the class's own.
        model: Name of the model, where known.
        request_id: The request's id, where it had one.
        sequence_id: The sequence that the request belonged to, where it was one of a stream.
    """

    code: ClassVar[str] = "Unknown"
    sequence_id: int | str | None = None

    def __init__(self, message: str, *, model: str | None = None, request_id: str | None = None) -> None:
        """Takes the message and what is known of its cause."""
        super().__init__(message)
        self.message = message
        self.model = model
        self.request_id = request_id


class InvalidArgument(InferError, ValueError):
    """Malformed body, wrong shape, unknown input."""

    code = "InvalidArgument"


class NotFound(InferError):
    """No such model or version."""

    code = "NotFound"


class NotReady(InferError):
    """The model exists but cannot serve now: it is loading or draining."""

    code = "NotReady"


class Overloaded(InferError):
    """A queue or connection limit is reached; `retry_after_s` says when to come back, where known."""

    code = "Overloaded"

    def __init__(
        self,
        message: str,
        *,
        model: str | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """Takes the message and what is known of its cause."""
        super().__init__(message, model=model, request_id=request_id)
        self.retry_after_s = retry_after_s


class DeadlineExceeded(InferError):
    """Time ran out; `where` is `queue` or `compute`, where known."""

    code = "DeadlineExceeded"

    def __init__(
        self, message: str, *, model: str | None = None, request_id: str | None = None, where: str | None = None
    ) -> None:
        """Takes the message and what is known of its cause."""
        super().__init__(message, model=model, request_id=request_id)
        self.where = where


class Cancelled(InferError):
    """Withdrawn by the caller."""

    code = "Cancelled"


class TooLarge(InferError):
    """A named limit on outside input was exceeded; `limit` is its name and value, where known."""

    code = "TooLarge"

    def __init__(
        self, message: str, *, model: str | None = None, request_id: str | None = None, limit: str | None = None
    ) -> None:
        """Takes the message and what is known of its cause."""
        super().__init__(message, model=model, request_id=request_id)
        self.limit = limit


class AlreadyExists(InferError):
    """The shared-memory region or model name is in use."""

    code = "AlreadyExists"


class Unsupported(InferError):
    """Valid, but not offered here."""

    code = "Unsupported"


class Unauthenticated(InferError):
    """The caller sent no valid credentials."""

    code = "Unauthenticated"


class PermissionDenied(InferError):
    """The caller may not do this."""

    code = "PermissionDenied"


class Internal(InferError):
    """The backend raised, or alipes is wrong; the message says which."""

    code = "Internal"


for _name in __all__:
    globals()[_name].__module__ = "alipes"  # where users import it from: a traceback says `alipes.NotFound`
