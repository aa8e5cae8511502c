"""A server's answer about a model, read in either of two ways: as a document, or as the message that it came in."""

from __future__ import annotations

from typing import Any

from alipes.config.schema import pool

__all__ = ["Answered"]


class Answered(dict[str, Any]):
    """A document, `config["input"][0]["name"]`, and the message that it was: `config.input[0].name`.

    The document has no fields that were left out, and its words are JSON's: whole numbers of 64 bits are texts. The
    message has every field, with its default where it was left out.
    """

    def __init__(self, message: Any) -> None:
        """Takes the message."""
        from google.protobuf.json_format import MessageToDict

        super().__init__(MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool()))
        self._message = message

    def __getattr__(self, name: str) -> Any:
        """A field, or a method, of the message."""
        if name.startswith("_"):  # what copies look for before there is a message
            raise AttributeError(name)
        return getattr(self._message, name)
