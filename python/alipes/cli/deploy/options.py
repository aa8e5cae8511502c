"""What every writer is told in the same way: the description, from a file and from options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from alipes.cli.written import Output, write

if TYPE_CHECKING:
    from alipes.deploy.description import Description

__all__ = [
    "Image",
    "Name",
    "Output",
    "Replicas",
    "Repository",
    "Settings",
    "Values",
    "description_of",
    "values_of",
    "write",
]

Repository: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="[REPOSITORY]",
        show_default=False,
        help="The models: a folder of the image or the machine, pvc://CLAIM/FOLDER, or a bucket.",
    ),
]
Values: TypeAlias = Annotated[
    Path | None,
    typer.Option("--values", "-f", metavar="FILE", show_default=False, help="A file with the description, in YAML."),
]
Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", show_default=False, help="One value over the file's, such as resources.gpus=1."
    ),
]
Name: TypeAlias = Annotated[str | None, typer.Option("--name", metavar="NAME", show_default=False, help="Its name.")]
Image: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--image",
        metavar="IMAGE",
        show_default=False,
        help="The image; by default that which `alipes deploy image` writes without --name.",
    ),
]
Replicas: TypeAlias = Annotated[
    int | None, typer.Option("--replicas", metavar="N", show_default=False, help="How many servers.")
]


def values_of(values: Path | None, settings: list[str] | None, shorthands: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a description: the file, `--set` over it, and the shorthands over both.

    Args:
        values: The file.
        settings: `KEY=VALUE`.
        shorthands: Values by their dotted names; those that are `None` were not said.

    Raises:
        ConfigError: If the file cannot be read, or a setting is written otherwise.
    """
    from alipes.deploy.reading import read_values, with_settings

    chosen = [f"{key}={value}" for key, value in shorthands.items() if value is not None]
    return with_settings(read_values(values) if values is not None else {}, [*(settings or ()), *chosen])


def description_of(values: Path | None, settings: list[str] | None, shorthands: Mapping[str, Any]) -> Description:
    """The description of a deployment; see `values_of`.

    Raises:
        ConfigError: If something does not fit.
    """
    from alipes.deploy.reading import described

    return described(values_of(values, settings, shorthands), values)
