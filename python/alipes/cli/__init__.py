"""The command `alipes` and its subcommands, one module for each; `cli.app` lists them."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code: 0 for success, 1 for an error.

    `serve` is taken before the rest of the command line is even imported: a server must be ready soon, and the packages
    that make help pages pretty cost as much as everything else that it needs.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        from alipes.cli.serve import serve

        return serve(arguments[1:])
    from alipes.cli.app import run

    return run(arguments)
