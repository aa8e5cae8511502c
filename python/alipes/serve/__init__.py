"""A server for the length of a `with` block, or beyond it: `from alipes.serve import serve`.

By default it is our own, a child process on this machine; a container image where one is named. Names are imported on
first use, so that the process which becomes the server pays for none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["Detached", "Instance", "attach", "launch", "serve"]

if TYPE_CHECKING:
    from alipes.serve.context import serve
    from alipes.serve.detached import Detached, attach, launch
    from alipes.serve.instance import Instance

_HOMES = {
    "Detached": "detached",
    "Instance": "instance",
    "attach": "detached",
    "launch": "detached",
    "serve": "context",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
