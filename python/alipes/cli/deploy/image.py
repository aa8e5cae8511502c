"""`alipes deploy image`: the server as a container image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from alipes.cli.failures import UsageFailed, perform
from alipes.cli.written import write

if TYPE_CHECKING:
    from alipes.deploy.image.push import Push

__all__ = ["HELP", "image"]

HELP: Final = """Write the server as a container image, without a container engine and without a base image.

\b
  alipes deploy image                            an OCI layout, in the folder image
  alipes deploy image models                     with the models of a folder
  alipes deploy image app.py                     with an app, and its folder
  alipes deploy image -o image.tar               an archive, for `podman load`
  alipes deploy image --push HOST/NAME:TAG       into a registry
  alipes deploy image --dockerfile > Dockerfile  for those who build as usual

What goes in is what is installed here: alipes, its Python, the packages that it
requires, and the libraries that they load. The same contents give the same
digest. Layers are kept in the cache, so that only what changed is made again.
"""


def image(  # noqa: PLR0913, PLR0917  # one parameter is one option
    repository: Annotated[
        str | None,
        typer.Argument(metavar="REPOSITORY", help="Folder of models, or app, that goes in; without, mounted."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="A folder, or a file that ends in .tar; by default image."),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option("--push", metavar="HOST/NAME:TAG", help="Push it to a registry; written as well with --output."),
    ] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Push without TLS, as to a registry of this machine.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.1,
            help="How long a registry may be silent; 60 by default.",
            show_default=False,
        ),
    ] = 60.0,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME:TAG", help="What engines call it; by default alipes:VERSION.")
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option("--extra", metavar="NAME", help="An extra of alipes that goes in, such as sklearn."),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option("--package", metavar="NAME", help="A further package that goes in, with what it requires."),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="A label of the image.")
    ] = None,
    dockerfile: Annotated[
        bool, typer.Option("--dockerfile", help="Write a Dockerfile in its place; to standard output without --output.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the digest and the layers as JSON.")] = False,
) -> int:
    """Write a container image; `HELP` says how."""

    def action() -> int:
        if dockerfile:
            from alipes.deploy.image.dockerfile import dockerfile as written

            write(written(repository), output)
            return 0
        from alipes.cli.deploy.made_image import make
        from alipes.deploy.image.build import Order

        order = Order(repository, tuple(extra or ()), tuple(package or ()), _labels(label or ()))
        push_to = None if push is None else _push(push, timeout, plain=plain_http)
        make(order, output, name=name, push=push_to, as_json=as_json)
        return 0

    return perform(action)


def _push(text: str, timeout_s: float, *, plain: bool) -> Push:
    from alipes.deploy.image.credentials import find_credentials
    from alipes.deploy.image.exchange import Exchange
    from alipes.deploy.image.push import Push
    from alipes.deploy.image.reference import Reference

    target = Reference.read(text)
    return Push(target, Exchange(target, find_credentials(target.host), plain=plain, timeout_s=timeout_s))


def _labels(words: Sequence[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for word, (key, equals, _) in zip(words, pairs, strict=True):
        if not key or not equals:
            raise UsageFailed("write a label as --label KEY=VALUE", f"'{word}' has no '='")
    return {key: value for key, _, value in pairs}
