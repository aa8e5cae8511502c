"""The metrics of a server, as Prometheus reads them."""

from __future__ import annotations

from urllib.request import urlopen

from support.server import ServerProcess

Samples = dict[str, float]


def samples(server: ServerProcess) -> Samples:
    """Every sample by its name and labels."""
    return samples_at(server.metrics)


def samples_at(address: str) -> Samples:
    """Every sample of the server whose metrics are at an address."""
    with urlopen(f"http://{address}/metrics", timeout=60) as response:
        text = response.read().decode()
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}
