"""How a run ends."""

from __future__ import annotations

from enum import IntEnum

from alipes.errors import AlipesError

__all__ = ["Exit", "Failed", "OptionFailed"]


class Exit(IntEnum):
    """The exit statuses of perf_analyzer."""

    OK = 0
    NOT_STABLE = 2
    """No level settled."""
    OPTION = 3
    """What an option asks for cannot be measured, or is not served here."""
    GENERIC = 99
    """Anything else: a command line that cannot be read, a server that does not answer, a request that fails."""


class Failed(AlipesError):
    """A run cannot go on.

    Attributes:
        status: The exit status.
    """

    def __init__(self, message: str, status: Exit = Exit.GENERIC) -> None:
        """Takes both."""
        super().__init__(message)
        self.status = status


class OptionFailed(Failed):
    """The command line cannot be read; the usage follows.

    Attributes:
        prefix: In front of the message, as perf_analyzer or its reader of options writes it.
    """

    def __init__(self, message: str, prefix: str = "Error: ") -> None:
        """Takes both."""
        super().__init__(message)
        self.prefix = prefix
