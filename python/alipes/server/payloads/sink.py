"""What takes payloads: one interface for events over HTTP and for files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Payload", "Sink", "SinkFailed"]


class SinkFailed(Exception):
    """The sink did not take what it was sent."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A request or a response, as the data plane copied it.

    Attributes:
        head: What it is about: `side`, `exchange`, `model`, `version`, `request_id`, `unix_ns`, `status`,
            `content_type`, `path`, `headers`. The exchange is the caller's `ce-id` where it sent one.
        body: What it says.
    """

    head: Mapping[str, Any]
    body: bytes


class Sink(ABC):
    """Takes payloads, some at a time."""

    @abstractmethod
    def send(self, payloads: Sequence[Payload]) -> None:
        """Sends payloads, all of them or none.

        Raises:
            SinkFailed: If the sink refuses them, or does not take them in time.
        """

    def close(self) -> None:  # noqa: B027 - files are closed once they are written
        """Ends what is left open."""
