"""`alipes serve` and `alipes tritonserver`: read the flags and run the server. They import only what serving needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from alipes.apps.process import AppProcess
from alipes.apps.serving import Apps, apps_of
from alipes.cli.mistakes import USAGE_ERROR, show_mistake
from alipes.config.forms import TRITONS
from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.config.triton_command_line import PROGRAM
from alipes.errors import ConfigError, Unsupported
from alipes.graph.serving import with_graph
from alipes.repository.single_files import with_single_files

if TYPE_CHECKING:
    from alipes.apps.companion import PagesCompanion

_OF_THE_SERVER: Final = ("model-repository", "load-model")
"""Flags that Triton's server looks at, and not its command line: the usage would be no help."""

_DEPRECATED: Final = {
    "--strict-model-config": "Warning: '--strict-model-config' has been deprecated! Please use "
    "'--disable-auto-complete-config' instead.",
    "--response-cache-byte-size": "Warning: '--response-cache-byte-size' has been deprecated! Please use "
    "'--cache-config=local,size=<bytes>' instead.",
}


def serve(arguments: Sequence[str], ahead: AppProcess | None = None) -> int:
    """Serves until a signal ends it.

    Args:
        arguments: Flags, folders and apps.
        ahead: A process for the first app, if one has been started already.

    Returns:
        0 after a clean drain, 1 after an error, 2 for a wrong command line; standard error has the mend.
    """
    if _show_page(arguments):
        return 0
    _warn_of_older(arguments)
    try:
        options = parse_flags(arguments, os.environ, folder=Path())
    except ConfigError as error:
        from alipes.cli.serve_mistakes import flag_mistake

        show_mistake(flag_mistake(error))
        return USAGE_ERROR
    try:
        return _run(with_graph(options), ahead)
    except (ConfigError, Unsupported) as error:  # of an app or a graph
        print(f"error: {error}", file=sys.stderr)
        return 1


def _run(options: ServerOptions, ahead: AppProcess | None) -> int:
    """Runs the server of folders, or of apps.

    Raises:
        ConfigError: If an app cannot be served.
    """
    options = with_single_files(options)
    apps = apps_of(options, ahead)
    if apps is None and ahead is not None:
        ahead.close()  # what looked like an app was none
    from alipes.cli.start_mistakes import start_mistake
    from alipes.server.process import run

    if apps is None:
        return run(options, partial(start_mistake, options), greets=True, companion=_companion(options))
    with apps:
        options = apps.options()
        return run(options, partial(start_mistake, options), greets=True, companion=_companion(options, apps))


def _companion(options: ServerOptions, apps: Apps | None = None) -> PagesCompanion:
    from alipes.apps.companion import PagesCompanion

    return PagesCompanion(apps, follows=options.repository.reload, describes_models=options.describes_models)


def serve_as_triton(arguments: Sequence[str]) -> int:
    """Serves until a signal ends it, as `tritonserver` with these arguments: its grammar, its defaults, its words.

    Returns:
        0 after a clean drain, 1 after an error; a wrong flag, and `--help`, show the usage on standard error.
    """
    _warn_of_older(arguments)
    try:
        options = parse_flags(arguments, os.environ, TRITONS)
    except ConfigError as error:
        _show_as_triton(error)
        return 1
    from alipes.server.process import run

    return run(options)


def _warn_of_older(arguments: Sequence[str]) -> None:
    """Names what stands for an older flag today, in Triton's words."""
    for argument in arguments:
        if warning := _DEPRECATED.get(argument.partition("=")[0]):
            print(warning, file=sys.stderr)


def _show_page(arguments: Sequence[str]) -> bool:
    """Shows what is asked for in place of a server, if anything is."""
    words = set(takewhile(lambda word: word != "--", arguments))
    if words & {"-V", "--version"}:
        import alipes

        print(f"alipes {alipes.__version__}")
    elif words & {"-h", "--help", "--help-all"}:
        from alipes.cli.flags import print_flags

        print_flags(every="--help-all" in words)
    else:
        return False
    return True


def _show_as_triton(error: ConfigError) -> None:
    from alipes.config.triton_usage import triton_usage

    text = str(error)
    if text.startswith(f"{PROGRAM}: "):
        print(text, file=sys.stderr)  # the C library says it at once
    elif error.key in _OF_THE_SERVER and not text.startswith("Bad option"):
        print(f"error: creating server: Invalid argument - {text}", file=sys.stderr)
        return
    print(triton_usage(f"{PROGRAM} [options]", TRITONS.defaults), text, sep="\n", file=sys.stderr)
