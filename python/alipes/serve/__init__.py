"""A server for the length of a `with` block, `serve`, of an object, `Server`, or beyond the script, `launch`.

    from alipes import serve

    with serve("models", wait=True, http_address="127.0.0.1") as server:
        with server.client() as client:
            print(client.infer("louder", [[1.0, 2.0, 3.0]]))

`serve("models", image=..., gpus=..., log_file=..., http_port=...)`: `help(alipes.serve.serve)` has all arguments. By
default the server is our own, a child process on this machine; a container image where one is named. The package can be
called: it and the function `serve` in it have one name, and a script may mean either.
"""

# Names are imported on first use, so that the process which becomes the server pays for none of them.

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
