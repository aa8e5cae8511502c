"""`alipes models traffic`: how the requests for a model are divided among its versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from alipes.cli.certificates import with_certificate
from alipes.cli.columns import print_columns
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, connect, read_headers
from alipes.cli.failures import UsageFailed, perform
from alipes.types import TrafficSplit

__all__ = ["split_document", "split_rows", "traffic", "weights_of"]

HEADINGS: Final = ("version", "weight", "share")


@with_certificate
def traffic(  # noqa: PLR0913, PLR0917  # one parameter is one flag
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model.")],
    weights: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VERSION=WEIGHT",
            show_default=False,
            help="Weights of versions, such as 1=90 2=10; none shows them.",
        ),
    ] = None,
    sticky_header: Annotated[
        str | None,
        typer.Option(
            "--sticky-header", metavar="NAME", show_default=False, help="Keep requests with one value of it together."
        ),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Leave all requests to the highest version again.")] = False,
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show or change how requests that name no version are divided among the versions of a model."""

    def action() -> int:
        wanted = weights_of(weights or (), sticky_header, off=off)
        with connect(url, read_headers(header, api_key), tls_roots) as client:
            if wanted is None:
                split = client.traffic(model)
            else:
                split = client.set_traffic(model, wanted, sticky_header=sticky_header)
        if as_json:
            print(json.dumps(split_document(split), indent=2))
        else:
            print_columns(HEADINGS, split_rows(split), right=HEADINGS[1:])
            if split.sticky_header is not None:
                print(f"requests with the same {split.sticky_header} go to the same version")
        return 0

    return perform(action)


def weights_of(words: Sequence[str], sticky_header: str | None, *, off: bool) -> dict[int, int] | None:
    """The weights that the command line asks for; `None` where it asks for no change.

    Raises:
        UsageFailed: If a word is no weight, a version comes twice, or words contradict each other.
    """
    if off and (words or sticky_header is not None):
        raise UsageFailed("leave --off out, or name no weights and no --sticky-header")
    if off:
        return {}
    weights: dict[int, int] = {}
    for word in words:
        version, equals, weight = word.partition("=")
        if not equals or not version.isdecimal() or not weight.removesuffix("%").isdecimal():
            raise UsageFailed("write VERSION=WEIGHT, such as 1=90 2=10", f"'{word}' is none")
        if int(version) in weights:
            raise UsageFailed(f"name version {int(version)} once")
        weights[int(version)] = int(weight.removesuffix("%"))
    if not weights and sticky_header is not None:
        raise UsageFailed("name the weights beside --sticky-header, such as 1=90 2=10")
    return weights or None


def split_rows(split: TrafficSplit) -> list[tuple[str, str, str]]:
    """One row for each version that serves or has a weight."""
    versions = sorted({*split.versions, *split.weights})
    if not split.weights:
        highest = max(split.versions, default=None)
        return [(str(version), "", "100 %" if version == highest else "0 %") for version in versions]
    serving = {version: weight for version, weight in split.weights.items() if version in split.versions}
    total = sum(serving.values())
    return [(str(one), str(split.weights.get(one, 0)), _share(serving.get(one, 0), total)) for one in versions]


def split_document(split: TrafficSplit) -> dict[str, object]:
    """The split as JSON has it."""
    return {
        "weights": {str(version): weight for version, weight in split.weights.items()},
        "sticky_header": split.sticky_header,
        "versions": list(split.versions),
    }


def _share(weight: int, total: int) -> str:
    return f"{100 * weight / total:.4g} %" if total else "0 %"
