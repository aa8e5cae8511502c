"""`alipes serve`: reads the flags and runs the server. Imports nothing that serving does not need."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from alipes.config.load import parse_flags
from alipes.errors import ConfigError

_HELP = ("--help", "-h")


def serve(arguments: Sequence[str]) -> int:
    """Serves until a signal ends it.

    Returns:
        0 after a clean drain, 1 after an error; a wrong flag shows the usage on standard error, the message last.
    """
    if any(argument in _HELP for argument in arguments):
        from alipes.cli.flags import print_flags

        print_flags()
        return 0
    try:
        options = parse_flags(arguments, os.environ)
    except ConfigError as error:
        return _show_usage(error)
    from alipes.server.process import run

    return run(options)


def _show_usage(error: ConfigError) -> int:
    from alipes.config.command_line import usage

    print(usage(), file=sys.stderr)
    print(error, file=sys.stderr)
    return 1
