"""The command `alipes` and its subcommands, one module for each; `cli.app` lists them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code: 0 for success, 1 for an error, 2 for a wrong flag of `serve`.

    Servers are taken before the rest of the command line is even imported: they must be ready soon, and the packages
    that make help pages pretty cost as much as everything else that they need. A program that is called `tritonserver`
    is that command.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and Path(sys.argv[0]).name == "tritonserver":
        arguments = ["tritonserver", *arguments]
    if arguments[:1] == ["serve"]:
        from alipes.cli.serve import serve

        return serve(arguments[1:])
    if arguments[:1] == ["tritonserver"]:
        from alipes.cli.serve import serve_as_triton

        return serve_as_triton(arguments[1:])
    from alipes.cli.app import run

    return run(arguments)
