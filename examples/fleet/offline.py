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
    """Runs each cell of n servers and k clients, from the start of its clients to the last row of its results."""
    measured = []
    for n, k in cells:
        done = batch.run(
            way.name,
            witnesses,
            folder / f"offline-{n}-{k}",
            repository=models,
            servers=n,
            clients=k,
            stream=True,
            form="npy",
        )
        rate = done.rows / way.rate / done.seconds
        cost = (n * prices.server + n * k * prices.client) / rate
        measured.append(OfflineCell(n, k, rate, cost))
        print(
            f"{n} servers, {k} clients of each: {rate:6.1f} s of data a second, {cost:.4f} an hour of data", flush=True
        )
    return measured
