"""`alipes launch`, `status` and `stop`: servers that outlive the terminal they were started in."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from alipes.cli.mistakes import USAGE_ERROR, show_mistake
from alipes.cli.serve_mistakes import flag_mistake
from alipes.cli.status import show, status
from alipes.config.load import parse_flags
from alipes.errors import AlipesError, ConfigError
from alipes.serve.detached import Detached, attach
from alipes.serve.detached import launch as launch_server

__all__ = ["launch", "status", "stop"]


HandleFile = Annotated[Path, typer.Argument(metavar="HANDLE", help="The file that `alipes launch` wrote.")]


def launch(
    context: typer.Context,
    repository: Annotated[str, typer.Argument(metavar="REPOSITORY", help="A folder, or the address of a bucket.")],
    handle: Annotated[Path, typer.Option(help="File by which the server is found again.")] = Path("alipes-server.json"),
    log_file: Annotated[Path | None, typer.Option(help="Where its output goes; beside the handle by default.")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help="Longest wait in seconds until it is ready.")
    ] = None,
) -> int:
    """Start a server that goes on running, and return once it is ready. Further flags are those of `alipes serve`."""
    try:
        parse_flags([repository, *context.args], os.environ)
    except ConfigError as error:  # before a process is started, which could say it in its log alone
        show_mistake(flag_mistake(error))
        return USAGE_ERROR
    return _report(
        lambda: launch_server(repository, handle, server_args=context.args, log_file=log_file, timeout=timeout), show
    )


def stop(handle: HandleFile = Path("alipes-server.json")) -> int:
    """Stop the server of a handle, after what it is doing."""
    return _report(lambda: attach(handle), _stop)


def _stop(server: Detached) -> int:
    server.stop()
    print(f"{server.name} has ended")
    return 0


def _report(find: Callable[[], Detached], then: Callable[[Detached], int]) -> int:
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    try:
        with find() as server:
            return then(server)
    except AlipesError as error:
        text = str(error)
        if "\n" in text:  # with the end of the server's log
            print(f"error: {text}", file=sys.stderr)
        else:
            show_mistake(_mended(text))
        return 1


def _mended(text: str) -> str:
    """The text with what to do in front."""
    seen, _, mend = text.rpartition(": ")
    if text.startswith("there is no handle "):
        return f"name the handle that alipes launch wrote; Ctrl-C ends alipes serve\n{text}"
    if text.startswith("there is no model repository at "):
        return f"{mend}\n{seen}" if mend.startswith("did you mean ") else f"name a folder of models\n{text}"
    return f"{mend}\n{seen}" if seen.endswith(" still runs") else text
