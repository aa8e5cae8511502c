"""The server of a script with attached models: a child that inherits the socket over which it hands instances over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alipes.attached.guard import Guard
from alipes.errors import ServeError
from alipes.serve.arguments import check
from alipes.serve.context import recipe
from alipes.serve.endpoints import flag_words
from alipes.serve.flags import FlagValue, keyword_words
from alipes.serve.server import Server
from alipes.serve.supervisor import Inherited

if TYPE_CHECKING:
    from alipes.client import Client

__all__ = ["ChildServer"]

_SETTLED: Final = {
    "model_control_mode": "attached models are loaded by name",
    "config": "write the flags of the file as keywords",
}
"""Flags that are no choice here, and why."""


class ChildServer(Server):
    """A server that takes the instances of its models from the script that starts it."""

    def __init__(  # noqa: PLR0913  # each is an option of its own
        self,
        repository: Path,
        socket: int,
        *,
        name: str | None = None,
        server_args: Sequence[str] | str | None = None,
        log_file: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
        guard: Guard | None = None,
        **flags: FlagValue,
    ) -> None:
        """Starts it without models, and waits until it is ready.

        Args:
            repository: Folder with the models' configurations.
            socket: Descriptor that it inherits.
            name: As in `alipes.Server`, and likewise those that follow.
            server_args: Flags as words of a command line.
            log_file: Where the server's output goes.
            timeout: Longest wait in seconds.
            guard: Who may load and unload; the script alone by default.
            flags: Flags of `alipes serve`.

        Raises:
            ServeError: If the server cannot be started, or a flag is unknown or settled here.
        """
        for flag in _SETTLED.keys() & flags.keys():
            raise ServeError(f"{flag}= cannot be given here: {_SETTLED[flag]}")
        check(log_file=log_file, timeout=timeout, name=name)
        self._guard = guard if guard is not None else Guard()
        settled = ("--model-control-mode=explicit", f"--backend-config=attached,socket={socket}")
        words, variables = self._guard.settle([*flag_words(server_args), *keyword_words(flags)], os.environ)
        plan = recipe(repository, None, name, None, [*words, *settled], "apptainer")
        self._begin(plan, log_file, timeout, wait=True, inherited=Inherited((socket,), variables))

    def client(self, **options: Any) -> Client:
        """A client of this server that may load and unload models, which no other client may."""
        headers = {**(options.pop("headers", None) or {}), **self._guard.headers}
        return super().client(headers=headers, **options)

    def wait_for_end(self, timeout_s: float) -> bool:
        """Whether the server has ended, as soon as it has or when the time is up."""
        return self._source.wait_for_end(timeout_s)
