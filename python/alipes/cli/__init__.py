"""The command `alipes` and its subcommands, one module for each; `cli.app` lists them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

# The names of Triton's programs, and the commands that answer to them.
PROGRAMS = {
    "tritonserver": ("tritonserver",),
    "perf_analyzer": ("perf_analyzer",),
    "model-analyzer": ("model_analyzer",),
}
_VERSION = (["--version"], ["-V"], ["version"])
_ROUTER_FLAG = "--graph-json"
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells count


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code: 0 for success, 1 for an error, 2 for a wrong command line.

    Ctrl-C ends it with 130 and without a word, also while its modules are being imported.
    """
    try:
        return _main(argv)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        # CPython notes an interrupt of code that it compiled from a text, as `dataclass` has it do, and ends the
        # process by SIGINT for it at last, also where the interrupt was caught. The next such code clears the note.
        eval("None")


def is_router(arguments: Sequence[str]) -> bool:
    """Whether a command line is that of KServe's router, which names no command: so our image can be its image."""
    return any(word.partition("=")[0] == _ROUTER_FLAG for word in arguments) and arguments[0].startswith("--")


def _main(argv: Sequence[str] | None) -> int:
    """Finds the command, and runs it.

    The version is answered, and servers are taken, before the rest of the command line is even imported: a server must
    be ready soon, and the packages that print help pages cost as much as everything else that it needs. A program that
    has the name of one of Triton's is the command that answers to it.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Not by pathlib: its import takes as long as all that `--version` needs.
    if argv is None and (command := PROGRAMS.get(os.path.basename(sys.argv[0]))):  # noqa: PTH119
        arguments = [*command, *arguments]
    if argv is None and (question := os.environ.get("_ALIPES_COMPLETE")):  # a shell, by the script that we gave it
        from alipes.cli.complete import complete

        return complete(question)
    if arguments in _VERSION:
        import alipes

        print(f"alipes {alipes.__version__}")
        return 0
    if arguments[:1] == ["serve"]:
        from alipes.apps.process import started_ahead

        with started_ahead(arguments[1:]) as process:
            from alipes.cli.serve import serve

            return serve(arguments[1:], process)
    if is_router(arguments):
        arguments = ["graph", *arguments]
    if arguments[:1] == ["perf_analyzer"]:
        from alipes.compat.perf_analyzer import main as perf_analyzer

        return perf_analyzer(arguments[1:])
    if arguments[:1] == ["tritonserver"]:
        from alipes.cli.serve import serve_as_triton

        return serve_as_triton(arguments[1:])
    from alipes.cli.app import run

    return run(arguments)
