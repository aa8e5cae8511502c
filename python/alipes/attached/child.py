"""The server of a script with attached models: a child that inherits the socket over which it hands instances over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from alipes.errors import ServeError
from alipes.serve.arguments import check
from alipes.serve.context import recipe
from alipes.serve.endpoints import flag_words
from alipes.serve.flags import FlagValue, keyword_words
from alipes.serve.server import Server

__all__ = ["ChildServer"]

_SETTLED = "model_control_mode"


class ChildServer(Server):
    """A server that takes the instances of its models from the script that starts it."""

    def __init__(
        self,
        repository: Path,
        socket: int,
        *,
        name: str | None = None,
        server_args: Sequence[str] | str | None = None,
        log_file: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
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
            flags: Flags of `alipes serve`.

        Raises:
            ServeError: If the server cannot be started, or a flag is unknown or settled here.
        """
        if _SETTLED in flags:
            raise ServeError(f"{_SETTLED}= is settled: attached models are loaded by name")
        check(log_file=log_file, timeout=timeout, name=name)
        settled = ("--model-control-mode=explicit", f"--backend-config=attached,socket={socket}")
        words = [*flag_words(server_args), *keyword_words(flags), *settled]
        plan = recipe(repository, None, name, None, words, "apptainer")
        self._begin(plan, log_file, timeout, wait=True, descriptors=(socket,))

    def wait_for_end(self, timeout_s: float) -> bool:
        """Whether the server has ended, as soon as it has or when the time is up."""
        return self._source.wait_for_end(timeout_s)
