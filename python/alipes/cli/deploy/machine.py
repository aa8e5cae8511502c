"""`alipes deploy compose` and `alipes deploy systemd`: what runs a server on one machine."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from alipes.cli.deploy.options import Image, Name, Output, Repository, Settings, Values, description_of, write
from alipes.cli.failures import UsageFailed, perform

__all__ = ["COMPOSE_HELP", "SYSTEMD_HELP", "compose", "systemd"]

COMPOSE_HELP: Final = """Write a file for Docker Compose or podman-compose.

\b
  alipes deploy compose ./models --image models:1 --output compose.yaml
  alipes deploy compose ./app.py --image alipes:1
  docker compose up
"""
SYSTEMD_HELP: Final = """Write a unit of systemd, which lets the server read its models and nothing else.

\b
  alipes deploy systemd /srv/models --output alipes.service
  alipes deploy systemd /srv/app/app.py --output app.service
  alipes deploy systemd /srv/models --idle-exit 300 --output alipes.service

With --idle-exit, alipes.socket is written too: systemd holds the ports, and the first connection starts the server.
"""


def compose(  # one parameter is one option
    repository: Repository = None,
    values: Values = None,
    settings: Settings = None,
    name: Name = None,
    image: Image = None,
    output: Output = None,
) -> int:
    """Write the file; `COMPOSE_HELP` says how."""

    def action() -> int:
        from alipes.deploy.compose import compose_document
        from alipes.deploy.yaml_text import yaml_of

        shorthands = {"repository": repository, "name": name, "image": image}
        write(yaml_of([compose_document(description_of(values, settings, shorthands))]), output)
        return 0

    return perform(action)


def systemd(
    repository: Repository = None,
    values: Values = None,
    settings: Settings = None,
    program: Annotated[
        str, typer.Option("--program", metavar="FILE", help="The command alipes, by its whole path.")
    ] = "/opt/alipes/bin/alipes",
    idle_exit: Annotated[
        float,
        typer.Option(
            "--idle-exit",
            min=0.0,
            metavar="SECONDS",
            help="Without a request for so long the server ends, and the next one starts it; 0 never ends it.",
        ),
    ] = 0.0,
    output: Output = None,
) -> int:
    """Write the unit; `SYSTEMD_HELP` says how."""

    def action() -> int:
        from alipes.deploy.systemd import socket_unit, systemd_unit

        if idle_exit and (output is None or output.suffix != ".service"):
            raise UsageFailed(
                "name the file of the unit, such as --output alipes.service: a .socket is written beside it"
            )
        description = description_of(values, settings, {"repository": repository})
        write(systemd_unit(description, program, idle_exit), output)
        if idle_exit and output is not None:
            write(socket_unit(description), output.with_suffix(".socket"))
        return 0

    return perform(action)
