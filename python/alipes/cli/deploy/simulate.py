"""`alipes deploy simulate`: a recorded day, replayed against Knative's scaler and one that knows start-up time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from alipes.cli.failures import UsageFailed, perform

if TYPE_CHECKING:
    from alipes.autoscale import DayFigures, KnativeSettings, Replica, Scaler, ServiceCurve, SimulatedDay

__all__ = ["SIMULATE_HELP", "simulate"]

SIMULATE_HELP: Final = """Replay a recorded day against Knative's scaler and one that knows start-up time.

\b
  alipes deploy simulate day.csv --start-up 20 --service-time 0.2 --concurrency 4
  alipes deploy simulate day.csv --start-up 20 --sized-by tuned/history.jsonl --output day.html
  alipes deploy simulate log.jsonl --start-up 20 --service-time 0.2 --knative window=120s

DAY has the columns time,count or time,rate or time, or lines of JSON, such as a payload log's.
"""


def simulate(  # noqa: PLR0913, PLR0917  # one parameter is one option
    day: Annotated[Path, typer.Argument(metavar="DAY", help="The recorded requests.")],
    start_up: Annotated[
        float,
        typer.Option("--start-up", min=0.0, metavar="SECONDS", help="From the order of a replica until it serves."),
    ],
    service_time: Annotated[
        float | None,
        typer.Option(
            "--service-time", min=1e-6, metavar="SECONDS", show_default=False, help="How long one request takes."
        ),
    ] = None,
    sized_by: Annotated[
        Path | None,
        typer.Option(
            "--sized-by", metavar="FILE", show_default=False, help="A result of alipes tune, instead of a service time."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", show_default=False, help="Which of the result's models.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            min=1,
            metavar="N",
            show_default=False,
            help="Requests that a replica works on at a time; 1, or what --sized-by recommends.",
        ),
    ] = None,
    least: Annotated[int, typer.Option("--min", min=0, metavar="N", help="Fewest replicas.")] = 0,
    most: Annotated[int, typer.Option("--max", min=0, metavar="N", help="Most replicas; 0 is no limit.")] = 0,
    knative: Annotated[
        list[str] | None,
        typer.Option(
            "--knative",
            metavar="NAME=VALUE",
            show_default=False,
            help="A setting of Knative's, such as window=120s or target=3; any number.",
        ),
    ] = None,
    replica_hour: Annotated[
        float | None,
        typer.Option(
            "--replica-hour", min=0.0, metavar="PRICE", show_default=False, help="What a replica costs for an hour."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", show_default=False, help="A page with pictures.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> int:
    """Replay a recorded day; `SIMULATE_HELP` says how."""

    def action() -> int:
        from alipes.autoscale import DayFigures, KnativeSettings, Replica, read_demand
        from alipes.autoscale import simulate as replay

        curve = _curve(service_time, sized_by, model, concurrency)
        replica = Replica(start_up, curve, concurrency or curve.knee)
        common = {"min-scale": str(least), "max-scale": str(most)}
        settings = KnativeSettings(container_concurrency=replica.concurrency).with_values(common | _pairs(knative))
        arrived = read_demand(day)
        scalers = _scalers(replica, settings)
        days = {name: replay(arrived, replica, scaler) for name, scaler in scalers.items()}
        figures = {name: DayFigures.of(one, replica_hour) for name, one in days.items()}
        about = _about(arrived.sum(), len(arrived), replica)
        if output is not None:
            _write_page(output, days, figures, about)
        if as_json:
            print(json.dumps({name: one.to_document() for name, one in figures.items()}, indent=2))
            return 0
        _print(figures, about)
        if output is not None:
            print(f"{output}: open it in a browser")
        return 0

    return perform(action)


def _curve(
    service_time: float | None, sized_by: Path | None, model: str | None, concurrency: int | None
) -> ServiceCurve:
    from alipes.autoscale import ServiceCurve, read_curve

    if (service_time is None) == (sized_by is None):
        raise UsageFailed("say how fast a replica is: either --service-time SECONDS or --sized-by FILE")
    if sized_by is not None:
        return read_curve(sized_by, model)
    assert service_time is not None
    return ServiceCurve.of_service_time(service_time, concurrency or 1)


def _pairs(texts: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageFailed(f"write --knative NAME=VALUE, not {text!r}")
        pairs[name] = value
    return pairs


def _scalers(replica: Replica, settings: KnativeSettings) -> dict[str, Scaler]:
    from alipes.autoscale import KnativeScaler, StartupAwareScaler, StartupAwareSettings

    ours = StartupAwareSettings(
        start_up_s=replica.start_up_s,
        curve=replica.curve,
        concurrency=replica.concurrency,
        least=settings.least,
        most=settings.most,
        initial_scale=settings.initial_scale,
    )
    return {"Knative": KnativeScaler(settings), "start-up aware": StartupAwareScaler(ours)}


def _about(requests: float, seconds: int, replica: Replica) -> list[str]:
    rate = replica.curve.rate(replica.concurrency)
    return [
        f"{requests:,.0f} requests in {seconds / 3600:,.1f} hours.",
        f"A replica starts in {replica.start_up_s:g} s, works on {replica.concurrency} requests at a time and answers "
        f"{rate:,.3g} requests per second.",
    ]


def _print(figures: dict[str, DayFigures], about: Sequence[str]) -> None:
    from alipes.autoscale.table import HEADINGS, cells
    from alipes.cli.columns import print_columns
    from alipes.cli.sentences import print_sentence

    for sentence in about:
        print_sentence(sentence)
    print_columns(["scaler", *HEADINGS], [(name, *cells(one)) for name, one in figures.items()], right=HEADINGS)


def _write_page(
    path: Path, days: dict[str, SimulatedDay], figures: dict[str, DayFigures], about: Sequence[str]
) -> None:
    from alipes.autoscale.page import comparison_page
    from alipes.cli.written import write

    write(comparison_page(days, figures, about), path)
