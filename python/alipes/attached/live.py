"""An object of this script as an instance of a model: what of it the server may call, and when."""

from __future__ import annotations

import threading
from typing import Any

from alipes.errors import ConfigError

__all__ = ["LiveInstance"]


class LiveInstance:
    """What executes for one instance.

    The server may have it twice for a while: a model that is loaded anew is served by the old version until the new one
    is ready. The object is initialized for the first of them, and finalized after the last.

    Attributes:
        number: Which of the model's instances it is, from 0.
        is_ready: The object's own check; absent where it has none.
    """

    def __init__(self, instance: object, model: str, number: int) -> None:
        """Takes a callable, or an object with `execute`.

        Raises:
            ConfigError: If it is neither.
        """
        execute = getattr(instance, "execute", None)
        if not callable(execute):
            execute = instance
        if not callable(execute) or isinstance(instance, type):
            raise ConfigError(
                f"instance {number} of model '{model}' is {instance!r}; it takes a function of a list of requests, "
                "or an object with a method `execute`",
                key="instances",
            )
        self.number = number
        self._object = instance
        self._execute = execute
        self._executing = threading.Lock()
        self._uses = 0
        check = getattr(instance, "is_ready", None)
        if callable(check):
            self.is_ready = check

    def initialize(self, arguments: dict[str, str]) -> None:
        """Has the object prepare, where it is not in use already. Raises what it raises; it is not in use then."""
        with self._executing:
            initialize = getattr(self._object, "initialize", None)
            if self._uses == 0 and callable(initialize):
                initialize(arguments)
            self._uses += 1

    def execute(self, requests: list[Any]) -> Any:
        """What the object makes of requests, or its coroutine for them."""
        with self._executing:
            return self._execute(requests)

    def finalize(self) -> None:
        """Has the object clean up, where this was its last use. Raises what it raises."""
        with self._executing:
            self._uses -= 1
            finalize = getattr(self._object, "finalize", None)
            if self._uses == 0 and callable(finalize):
                finalize()
