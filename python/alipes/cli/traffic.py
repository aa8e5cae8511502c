"""`alipes models traffic`: how the requests for a model are divided among its versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

import msgspec
import typer

from alipes.cli.certificates import with_certificate
from alipes.cli.columns import print_columns
from alipes.cli.connection import ApiKey, Header, TlsRoots, Url, connect, read_headers
from alipes.cli.failures import UsageFailed, perform
from alipes.types import Shadow, TrafficSplit

__all__ = ["Comparison", "comparison_of", "split_document", "split_rows", "traffic", "weights_of"]

HEADINGS: Final = ("version", "weight", "share")


class Comparison(msgspec.Struct, frozen=True):
    """How the answers of a shadow compare with those that callers got.

    Attributes:
        compared: Pairs of answers.
        different: Those that lie further apart than is tolerated.
        failed: Copies that had no answer.
        dropped: Copies that were not made, since too many were under way.
        largest_difference: By output.
    """

    compared: int
    different: int
    failed: int
    dropped: int
    largest_difference: dict[str, float]


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
    shadow: Annotated[
        int | None,
        typer.Option(
            "--shadow", metavar="VERSION", show_default=False, help="Send this version copies and compare its answers."
        ),
    ] = None,
    shadow_percent: Annotated[
        float, typer.Option("--shadow-percent", metavar="PERCENT", help="Copy this share of the requests.")
    ] = Shadow(0).percent,
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="DIFFERENCE", help="Answers so close to each other are equal.")
    ] = Shadow(0).tolerance,
    off: Annotated[bool, typer.Option("--off", help="Leave all requests to the highest version again.")] = False,
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show or change how requests that name no version are divided among the versions of a model."""

    def action() -> int:
        copies = None if shadow is None else Shadow(shadow, shadow_percent, tolerance)
        wanted = weights_of(weights or (), sticky_header, copies, off=off)
        with connect(url, read_headers(header, api_key), tls_roots) as client:
            if wanted is None:
                split = client.traffic(model)
            else:
                split = client.set_traffic(model, wanted, sticky_header=sticky_header, shadow=copies)
            compared = None if split.shadow is None else comparison_of(client.traffic_outcomes(model), split.shadow)
        if as_json:
            print(json.dumps(split_document(split, compared), indent=2))
        else:
            print_columns(HEADINGS, split_rows(split), right=HEADINGS[1:])
            for line in _notes(split, compared):
                print(line)
        return 0

    return perform(action)


def weights_of(
    words: Sequence[str], sticky_header: str | None, shadow: Shadow | None, *, off: bool
) -> dict[int, int] | None:
    """The weights that the command line asks for; `None` where it asks for no change.

    Raises:
        UsageFailed: If a word is no weight, a version comes twice, or words contradict each other.
    """
    if off and (words or sticky_header is not None or shadow is not None):
        raise UsageFailed("leave --off out, or name no weights, no --sticky-header and no --shadow")
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
    return weights if weights or shadow is not None else None


def comparison_of(outcomes: Mapping[int, Mapping[str, Any]], shadow: Shadow) -> Comparison:
    """How the answers of the shadow compare with those that callers got."""
    return msgspec.convert(outcomes[shadow.version]["comparison"], Comparison)


def split_rows(split: TrafficSplit) -> list[tuple[str, str, str]]:
    """One row for each version that serves or has a weight."""
    versions = sorted({*split.versions, *split.weights})
    if not split.weights:
        highest = max(split.versions, default=None)
        return [(str(version), "", "100 %" if version == highest else "0 %") for version in versions]
    serving = {version: weight for version, weight in split.weights.items() if version in split.versions}
    total = sum(serving.values())
    return [(str(one), str(split.weights.get(one, 0)), _share(serving.get(one, 0), total)) for one in versions]


def split_document(split: TrafficSplit, compared: Comparison | None) -> dict[str, object]:
    """The split as JSON has it."""
    document: dict[str, object] = {
        "weights": {str(version): weight for version, weight in split.weights.items()},
        "sticky_header": split.sticky_header,
        "versions": list(split.versions),
    }
    if split.shadow is not None:
        document["shadow"] = asdict(split.shadow)
        document["comparison"] = msgspec.to_builtins(compared)
    return document


def _notes(split: TrafficSplit, compared: Comparison | None) -> Iterator[str]:
    """What the table does not show."""
    if split.sticky_header is not None:
        yield f"requests with the same {split.sticky_header} go to the same version"
    if split.shadow is None or compared is None:
        return
    yield f"version {split.shadow.version} gets copies of {split.shadow.percent:g} % of the requests"
    lost = f", {compared.failed:,} failed, {compared.dropped:,} dropped"
    yield f"copies: {compared.compared:,} compared, {compared.different:,} different{lost}"
    if compared.different:
        furthest = max(compared.largest_difference, key=lambda name: compared.largest_difference[name])
        yield f"largest difference: {compared.largest_difference[furthest]:.3g} in output '{furthest}'"


def _share(weight: int, total: int) -> str:
    return f"{100 * weight / total:.4g} %" if total else "0 %"
