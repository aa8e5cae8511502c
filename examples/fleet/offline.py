"""The first figure's measurements: a series that is there, cut over n servers with k clients each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from alipes import batch
from models import Way
from strain import Series


@dataclass(frozen=True)
class Prices:
    """What an hour costs, in any currency.

    Attributes:
        server: Of a server.
        client: Of a client.
    """

    server: float
    client: float


@dataclass(frozen=True)
class OfflineCell:
    """One run.

    Attributes:
        servers: Servers.
        clients: Clients of each.
        data_s_per_s: Seconds of data in a second.
        cost: Of an hour of data.
    """

    servers: int
    clients: int
    data_s_per_s: float
    cost: float


def measure(
    way: Way, witnesses: Series, models: Path, folder: Path, cells: Sequence[tuple[int, int]], prices: Prices
) -> list[OfflineCell]:
    """Runs each cell of n servers and k clients twice: whatever else the machine does disturbs one of them less."""
    rates = dict.fromkeys(cells, 0.0)
    for again in range(2):
        for n, k in cells:
            rate = _rate(way, witnesses, models, folder / f"offline-{n}-{k}-{again}", (n, k))
            rates[n, k] = max(rates[n, k], rate)
            print(f"{n} servers, {k} clients of each: {rate:6.1f} s of data a second", flush=True)
    return [
        OfflineCell(n, k, rate, (n * prices.server + n * k * prices.client) / rate) for (n, k), rate in rates.items()
    ]


def _rate(way: Way, witnesses: Series, models: Path, folder: Path, cell: tuple[int, int]) -> float:
    """Seconds of data in a second, from the start of the clients to the last row of the results."""
    n, k = cell
    done = batch.run(way.name, witnesses, folder, repository=models, servers=n, clients=k, stream=True, form="npy")
    return done.rows / way.rate / done.seconds
