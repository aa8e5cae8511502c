"""The block of a `with serve(...)`: its server runs from the first line to the last."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from types import TracebackType

from alipes.serve.instance import Instance

__all__ = ["ServerBlock"]

_HOW = "write `with serve(...) as instance:`, or `instance = Server(...)`"


class ServerBlock(AbstractContextManager[Instance, None]):
    """A server that starts where the block begins. It reminds a script that forgets the `with`."""

    def __init__(self, serving: AbstractContextManager[Instance]) -> None:
        """Starts nothing yet."""
        self._serving = serving
        self._begun = False

    def __enter__(self) -> Instance:
        """Starts the server."""
        self._begun = True
        return self._serving.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self._serving.__exit__(kind, error, trace)

    def __getattr__(self, name: str) -> object:
        """No server, no attributes of one."""
        if not name.startswith("_") and (hasattr(Instance, name) or name in ("name", "log_path")):
            raise AttributeError(f"there is no '{name}' before the block begins: {_HOW}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __del__(self) -> None:
        """Says that a server was never started."""
        if not self.__dict__.get("_begun", True):
            warnings.warn(f"serve(...) started no server: {_HOW}", RuntimeWarning, stacklevel=2)
