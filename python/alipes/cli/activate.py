"""`alipes activate -- serve ...`: holds the listening sockets of a server that runs while somebody asks for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

from alipes.cli.failures import CommandFailed, UsageFailed, perform
from alipes.errors import ConfigError

__all__ = ["ACTIVATE_HELP", "activate"]

ACTIVATE_HELP: Final = """Hold the ports of a server that runs while somebody asks for it.

\b
  alipes activate -- serve models --idle-exit 300

The ports are open at once, and the first connection starts the server. With --idle-exit the server ends once nobody
asks for anything; the next connection starts it again. No request is lost: connections wait while it starts and ends.
"""


def activate(
    context: typer.Context,
    words: list[str] = typer.Argument(metavar="serve ...", help="The command line of the server."),  # noqa: B008
) -> int:
    """Hold the ports; `ACTIVATE_HELP` says how."""
    del context

    def action() -> int:
        from alipes.activation import Activator, hold_sockets
        from alipes.config.load import parse_flags
        from alipes.server.log import configure, log

        if words[:1] != ["serve"]:
            raise UsageFailed("write the command line of a server behind --: alipes activate -- serve models")
        try:
            options = parse_flags(words[1:], os.environ, folder=Path())
        except ConfigError as error:
            raise UsageFailed(f"mend the command line of the server: {error.explain()}") from error
        try:
            configure(options.log)
        except OSError as error:
            raise CommandFailed(f"choose another --log-file: {options.log.file} cannot be written") from error
        sockets = hold_sockets(options)
        if not options.idle_exit_s:
            log.warning("the server never ends by itself: say --idle-exit SECONDS behind serve")
        with Activator(_command(words), os.environ, sockets) as activator:
            for one in sockets:
                log.info("%s waits for connections at %s", one.name, _place(one.socket.getsockname()))
            return activator.run()

    return perform(action)


def _command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "alipes", *words]


def _place(name: object) -> str:
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else f"unix:{name}"
