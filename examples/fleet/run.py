"""The three figures of a talk, measured on this machine: one command, under ten minutes.

    pip install 'alipes[examples,plots]'
    python examples/fleet/run.py

A detector's strain has the noise of machines in it, which witnesses hear as well. A network predicts that noise from
the witnesses. The figures: how fast and how dear n servers with k clients each clean a series that is there; how long
a frame that arrives waits for its answers, over the rate of predictions; how clean the strain gets, over how many
predictions make a mean.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import aggregation
import offline
import online
from alipes.serve import serve
from models import Way, export
from offline import Prices
from strain import recording


@dataclass(frozen=True)
class Extent:
    """How much is measured.

    Attributes:
        seconds: Data of the first figure, in seconds.
        cells: Servers, and clients of each.
        ways: Ways of the second figure.
        frames: Frames of each.
        period_s: Seconds from frame to frame.
        covers: Predictions of a mean, in the third figure.
    """

    seconds: int
    cells: tuple[tuple[int, int], ...]
    ways: tuple[Way, ...]
    frames: int
    period_s: float
    covers: tuple[int, ...]


OFFLINE = Way(32, 16, 4)
FULL = Extent(
    seconds=600,
    cells=tuple((n, k) for n in (1, 2, 3) for k in (1, 2, 4)),
    ways=tuple(Way(rate, strides, 4) for strides in (1, 8) for rate in (8, 16, 32, 64, 128, 256, 512)),
    frames=6,
    period_s=1.0,
    covers=(1, 2, 4, 8, 16, 32),
)
QUICK = Extent(
    seconds=40,
    cells=((1, 1), (2, 1)),
    ways=(Way(8, 1, 4), Way(32, 8, 4)),
    frames=2,
    period_s=0.3,
    covers=(1, 8),
)


def main() -> None:
    """Measures and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="some of the cells, in seconds")
    parser.add_argument("--output", type=Path, default=Path("fleet"), help="folder for what is written; a new one")
    parser.add_argument("--server-price", type=float, default=0.35, help="what a server costs in an hour (0.35)")
    parser.add_argument("--client-price", type=float, default=0.04, help="what a client costs in an hour (0.04)")
    parser.add_argument("--seed", type=int, default=7, help="another number, other noise (7)")
    parser.add_argument("--no-pictures", action="store_true", help="only the text, which needs no matplotlib")
    asked = parser.parse_args()
    extent = QUICK if asked.quick else FULL
    asked.output.mkdir(parents=True)

    begun_s = time.monotonic()
    means = [Way(32, 16, cover) for cover in extent.covers]
    models = asked.output / "models"
    export(models, [OFFLINE, *extent.ways, *means])
    data = recording(extent.seconds, asked.seed)
    minute = recording(min(extent.seconds, 64), asked.seed)
    with serve(models, wait=True) as instance:
        cleaned = aggregation.clean(means, minute, instance.grpc)
        streams = online.measure(
            extent.ways, data.witnesses, instance.grpc, asked.output, extent.frames, extent.period_s
        )
    prices = Prices(asked.server_price, asked.client_price)
    cells = offline.measure(OFFLINE, data.witnesses, models, asked.output, extent.cells, prices)
    cheapest = min(cells, key=lambda cell: cell.cost)
    print(
        f"cheapest: {cheapest.servers} servers, {cheapest.clients} clients of each: {cheapest.data_s_per_s:.1f} s of "
        f"data a second, {cheapest.cost:.4f} for an hour of data"
    )
    if not asked.no_pictures:
        import pictures

        print(pictures.draw_offline(cells, asked.output / "offline.png"))
        print(pictures.draw_online(streams, extent.period_s, asked.output / "online.png"))
        print(pictures.draw_aggregation(minute, cleaned, asked.output / "aggregation.png"))
    print(f"measured in {time.monotonic() - begun_s:.0f} s")


if __name__ == "__main__":
    main()
