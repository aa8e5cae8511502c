"""A server for the length of a `with` block, or beyond it: `from alipes import serve`.

By default it is our own, a child process on this machine; a container image where one is named. Names are imported on
first use, so that the process which becomes the server pays for none of them. The package can be called: it and the
function `serve` in it have one name, and a script may mean either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily, make_callable

__all__ = ["Detached", "Instance", "Server", "attach", "launch", "serve"]

if TYPE_CHECKING:
    from alipes.serve.context import serve
    from alipes.serve.detached import Detached, attach, launch
    from alipes.serve.instance import Instance
    from alipes.serve.server import Server

_HOMES = {
    "Detached": "alipes.serve.detached",
    "Instance": "alipes.serve.instance",
    "Server": "alipes.serve.server",
    "attach": "alipes.serve.detached",
    "launch": "alipes.serve.detached",
    "serve": "alipes.serve.context",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
make_callable(__name__, "serve")
