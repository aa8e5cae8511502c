"""What the link to a server needs of a stream; `alipes._core.ClientStream` is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

__all__ = ["Response", "Stream", "Target"]

Response: TypeAlias = "tuple[str, dict[str, Any] | None, str | None, bool | None]"
"""A request's id; its outputs or `None`; the text of its error or `None`; whether it is the last one of its request."""


class Target(NamedTuple):
    """The constant part of a stream's requests: model, version as text, and parameters."""

    model: str
    version: str
    parameters: dict[str, bool | int | float | str] | None = None


class Stream(Protocol):
    """A stream of requests to one server and of its responses."""

    def send(  # noqa: PLR0913, PLR0917 - what a request may say
        self,
        model: str,
        version: str,
        inputs: Sequence[tuple[str, str, Sequence[int], Any]],
        outputs: Sequence[str] | None = ...,
        request_id: str = ...,
        sequence_id: int | str | None = ...,
        sequence_start: bool = ...,
        sequence_end: bool = ...,
        parameters: Any = ...,
        timeout_us: int = ...,
    ) -> None:
        """Sends a request, or raises `TransportError` when the stream has ended."""

    def receive(self, most: int, timeout_s: float | None = ...) -> list[Response] | None:
        """Responses that have arrived; an empty list when the time is up, `None` when the stream has ended."""

    def half_close(self) -> None:
        """Says that nothing more will be sent."""

    def cancel(self) -> None:
        """Ends the stream at once."""

    def status(self) -> tuple[str, str] | None:
        """Why the stream ended: gRPC's name of the code and a text."""
