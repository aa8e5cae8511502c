"""Has the data plane know the keys of a file, also those that come and go while the server runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from alipes.config.api_keys import read_key_file
from alipes.config.listener_options import ApiKeyOptions
from alipes.errors import ConfigError
from alipes.server.log import log
from alipes.server.service_thread import ServiceThread

__all__ = ["KeyFile", "all_keys"]

# How late a change counts. A look is one call of the system.
INTERVAL_S: Final = 1.0


def all_keys(options: ApiKeyOptions) -> list[str]:
    """The keys that were named and those of the file.

    Raises:
        ConfigError: If the file cannot be read.
    """
    return [*options.keys, *(read_key_file(options.file) if options.file else ())]


class KeyFile(ServiceThread):
    """Reads the file again when it has changed. What cannot be read changes nothing, and is logged once."""

    def __init__(self, options: ApiKeyOptions, replace: Callable[[list[str]], None]) -> None:
        """Prepares the thread.

        Args:
            options: Name the file, and the keys beside it.
            replace: Takes all keys.
        """
        super().__init__("alipes-keys")
        self._options = options
        self._replace = replace
        self._state = self._now()

    def look(self) -> None:
        """Looks once."""
        state = self._now()
        if state == self._state:
            return
        self._state = state
        try:
            keys = all_keys(self._options)
        except ConfigError as error:
            log.error("the keys stay as they were: %s", str(error).partition("\n")[2])
            return
        self._replace(keys)
        log.info("The keys were read again: there are %d.", len(keys))

    def _now(self) -> tuple[int, ...] | None:
        """What changes with the file; None where there is none. Links are followed: Kubernetes swaps one."""
        try:
            found = Path(self._options.file).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_S):
            self.look()
