"""Lines of a model in the server's log."""

from __future__ import annotations

import sys
from enum import Enum
from types import FrameType
from typing import Final

from alipes.worker.current import current
from alipes.worker.triton.arguments import wrong_call

__all__ = ["Level", "Logger"]


class Level(Enum):
    """How grave a line is; the values are Triton's."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


# The link counts from the gravest.
_ON_LINK: Final = {Level.ERROR: 0, Level.WARNING: 1, Level.INFO: 2, Level.VERBOSE: 3}


class Logger:
    """Writes into the server's log, with the place of the call. Its functions belong to the class."""

    LogLevel = Level
    INFO = Level.INFO
    WARNING = Level.WARNING
    ERROR = Level.ERROR
    VERBOSE = Level.VERBOSE

    @staticmethod
    def log(message: str, level: Level = Level.INFO) -> None:
        """Writes a line of a level.

        Raises:
            TypeError: If the message is no text, or the level none of `LogLevel`.
        """
        if not isinstance(message, str) or not isinstance(level, Level):
            supported = "(message: str, level: c_python_backend_utils.Logger.LogLevel = <LogLevel.INFO: 0>) -> None"
            raise wrong_call("log", supported, message, level)
        _write(message, level, sys._getframe(1))

    @staticmethod
    def log_info(message: str) -> None:
        """Writes a line of information."""
        _check("log_info", message)
        _write(message, Level.INFO, sys._getframe(1))

    @staticmethod
    def log_warn(message: str) -> None:
        """Writes a warning."""
        _check("log_warn", message)
        _write(message, Level.WARNING, sys._getframe(1))

    @staticmethod
    def log_error(message: str) -> None:
        """Writes an error."""
        _check("log_error", message)
        _write(message, Level.ERROR, sys._getframe(1))

    @staticmethod
    def log_verbose(message: str) -> None:
        """Writes a line that the server shows while its verbose level is 1 or more."""
        _check("log_verbose", message)
        _write(message, Level.VERBOSE, sys._getframe(1))


def _check(name: str, message: object) -> None:
    if not isinstance(message, str):
        raise wrong_call(name, "(message: str) -> None", message)


def _write(message: str, level: Level, caller: FrameType) -> None:
    if level is Level.VERBOSE and not (current.link is not None and current.link.is_verbose()):
        return
    file = caller.f_code.co_filename
    if current.link is not None:
        current.link.log(_ON_LINK[level], file, caller.f_lineno, message)
    else:  # the model completes its configuration: there is only the console
        sys.stderr.write(f"{level.name[0]} {file}:{caller.f_lineno}] {message}\n")
