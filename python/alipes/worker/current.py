"""What this process serves: a worker has one link and one model, and a model file asks for them by function calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(slots=True)
class Current:
    """What is known of this process's model.

    Attributes:
        link: The link to the server; ``None`` while a model only completes its configuration.
        version_directory: The folder of the model's version.
    """

    link: ServerLink | None = None
    version_directory: str = ""


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
