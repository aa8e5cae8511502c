"""`alipes deploy envoy`: one address in front of several servers."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from alipes.cli.failures import perform
from alipes.cli.written import Output, write

__all__ = ["HELP", "envoy"]

HELP: Final = """Write a configuration of Envoy, which gives several servers one address.

\b
  alipes deploy envoy gpu-1 gpu-2 -o envoy.yaml
  envoy -c envoy.yaml

Requests of a sequence go to one server, by the header x-sequence-id, which the clients of alipes send; others go to the
server with the fewest in flight. A server that is not ready gets none.
"""


def envoy(
    servers: Annotated[
        list[str],
        typer.Argument(
            metavar="HOST[:HTTP[:GRPC]]",
            help="A server: its host, and its ports where they are not 8000 and 8001. A name stands for each of its "
            "addresses.",
        ),
    ],
    output: Output = None,
    address: Annotated[str, typer.Option("--address", help="Where Envoy listens.")] = "0.0.0.0",
    http_port: Annotated[int, typer.Option("--http-port", min=1, max=65535, help="Its port for HTTP.")] = 8000,
    grpc_port: Annotated[int, typer.Option("--grpc-port", min=1, max=65535, help="Its port for gRPC.")] = 8001,
    admin_port: Annotated[
        int, typer.Option("--admin-port", min=1, max=65535, help="The port of its own pages, at 127.0.0.1.")
    ] = 9901,
) -> int:
    """Write a configuration of Envoy; `HELP` says how."""

    def action() -> int:
        from alipes.deploy.envoy import Backend, EnvoySettings, written

        backends = tuple(Backend.parse(one) for one in servers)
        write(written(EnvoySettings(backends, address, http_port, grpc_port, admin_port)), output)
        return 0

    return perform(action)
