"""`alipes deploy kubernetes` and `alipes deploy helm`: what runs servers in a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from alipes.cli.deploy.options import (
    Image,
    Name,
    Output,
    Replicas,
    Repository,
    Settings,
    Values,
    description_of,
    write,
)
from alipes.cli.failures import CommandFailed, perform

__all__ = ["HELM_HELP", "HELP", "helm", "kubernetes"]

HELP: Final = """Write what runs servers on Kubernetes, checked against its schemas.

\b
  alipes deploy kubernetes --image registry.example.org/models:1 --replicas 2
  alipes deploy kubernetes gs://bucket/models -f values.yaml | alipes deploy apply -

Everything that can be said is a value of -f and --set; `alipes deploy helm` writes a file with all of them.
"""
HELM_HELP: Final = """Write a Helm chart, which gives what `alipes deploy kubernetes` writes.

\b
  alipes deploy helm --image registry.example.org/models:1 --output chart
  helm install models chart
"""

Version = Annotated[
    str,
    typer.Option("--kubernetes-version", metavar="VERSION", help="Of the schemas, such as 1.33."),
]


def kubernetes(  # noqa: PLR0913, PLR0917  # one parameter is one option
    repository: Repository = None,
    values: Values = None,
    settings: Settings = None,
    name: Name = None,
    image: Image = None,
    replicas: Replicas = None,
    output: Output = None,
    version: Version = "newest",
) -> int:
    """Write the objects; `HELP` says how."""

    def action() -> int:
        from alipes.deploy import check_objects, kubernetes_objects
        from alipes.deploy.yaml_text import yaml_of

        shorthands = {"repository": repository, "name": name, "image": image, "replicas": replicas}
        objects = kubernetes_objects(description_of(values, settings, shorthands))
        for kind in check_objects(objects, version=version):
            print(f"not checked: {kind} is no kind of Kubernetes itself", file=sys.stderr)
        write(yaml_of(objects), output)
        return 0

    return perform(action)


def helm(  # noqa: PLR0913, PLR0917  # one parameter is one option
    repository: Repository = None,
    values: Values = None,
    settings: Settings = None,
    name: Name = None,
    image: Image = None,
    replicas: Replicas = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write it, a new or an empty folder.")
    ] = Path("chart"),
) -> int:
    """Write the chart; `HELM_HELP` says how."""

    def action() -> int:
        import alipes
        from alipes.deploy.helm.chart import chart_files

        shorthands = {"repository": repository, "name": name, "image": image, "replicas": replicas}
        files = chart_files(description_of(values, settings, shorthands), alipes.__version__)
        _write_folder(files, output)
        print(f"{output}: {len(files)} files; `helm install {name or 'alipes'} {output}` installs it")
        return 0

    return perform(action)


def _write_folder(files: dict[str, str], folder: Path) -> None:
    try:
        if folder.is_dir() and any(folder.iterdir()) and not (folder / "Chart.yaml").exists():
            raise CommandFailed(f"choose another --output: {folder} holds something else")
        for name, text in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"choose another --output: {folder} cannot be written", str(error)) from error
