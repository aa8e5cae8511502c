"""What this process serves, which a model file asks for by function calls.

A worker has one link and one model. A script with attached instances has several: each belongs to its threads.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Final, Protocol

from alipes._core import TritonModelException

__all__ = ["Current", "ServerLink", "ask", "current"]


class ServerLink(Protocol):
    """What calls the server: the worker's link or, in a process that the model forked, the worker's `Relay`."""

    def call(self, name: str, json: str, /) -> str:
        """Asks for something by name."""

    def log(self, level: int, file: str, line: int, text: str, /) -> None:
        """Writes a line of the log."""

    def is_verbose(self) -> bool:
        """Whether the server wants verbose lines now."""


class Current:
    """What is known of the model that this process or, in a script, this thread runs.

    Attributes:
        version_directory: The folder of the model's version.
    """

    def __init__(self) -> None:
        """Knows nothing yet."""
        self.version_directory = ""
        self._of_process: ServerLink | None = None
        self._of_thread = threading.local()

    @property
    def link(self) -> ServerLink | None:
        """The link to the server; ``None`` while a model only completes its configuration."""
        found: ServerLink | None = getattr(self._of_thread, "link", None)
        return found if found is not None else self._of_process

    @link.setter
    def link(self, link: ServerLink | None) -> None:
        self._of_process = link

    def bind(self, link: ServerLink | None) -> None:
        """Has this thread work for an attached instance, by its link, or for none any more."""
        self._of_thread.link = link


current: Final = Current()


def ask(name: str, question: Mapping[str, object], failure: str) -> dict[str, Any]:
    """Asks the server something and waits for the answer.

    Args:
        name: The name of the call, such as ``model.ready``.
        question: Its details.
        failure: What stands in front of the server's refusal.

    Raises:
        TritonModelException: If the server refuses, or there is none to ask.
    """
    if current.link is None:
        raise TritonModelException(f"{failure}: it is not possible while a model is asked for its configuration.")
    try:
        answer = current.link.call(name, json.dumps(question))
    except TritonModelException as error:
        raise TritonModelException(f"{failure}: {error}") from None
    found: dict[str, Any] = json.loads(answer) if answer else {}
    return found
