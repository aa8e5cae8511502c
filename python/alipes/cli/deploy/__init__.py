"""`alipes deploy`: what brings a server to other machines, one module for each command; listed at the foot."""

from __future__ import annotations

from typing import Final

import typer

from alipes.cli.deploy.image import HELP as IMAGE_HELP
from alipes.cli.deploy.image import image

__all__ = ["deploy_app"]

deploy_app: Final = typer.Typer(help="Write what runs a server elsewhere: images, manifests, units.")

deploy_app.command("image", help=IMAGE_HELP, short_help="Write a container image, without a container engine.")(image)
