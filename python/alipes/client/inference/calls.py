"""The control calls that a streaming client makes: health, metadata, configuration, load."""

from __future__ import annotations

from typing import Protocol

from alipes.client.signature import Document

__all__ = ["Calls"]


class Calls(Protocol):
    """Control calls to one server; each raises `TransportError` if the server cannot be reached."""

    def is_live(self) -> bool:
        """Whether the server runs."""

    def is_ready(self, model: str, version: str) -> bool:
        """Whether a version can answer."""

    def metadata(self, model: str, version: str) -> Document:
        """Names, datatypes and shapes."""

    def config(self, model: str, version: str) -> Document:
        """The configuration."""

    def models(self) -> list[str]:
        """Names of the models that the server knows of."""

    def load(self, model: str) -> None:
        """Loads a model, or raises what the server says."""

    def close(self) -> None:
        """Ends the connection."""
