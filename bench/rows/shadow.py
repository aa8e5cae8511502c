"""A version whose requests are all copied for a shadow: what it keeps of its rate beside the shadow's own compute."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.fleet import Fleet
from bench.load import wrk
from bench.models.repository import repository
from bench.paths import WORK
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers import probe
from bench.servers.endpoint import Endpoint
from bench.work import BINARY, work

CONV = "conv"
CONNECTIONS = 16
ALONE = "version 1, no shadow"
SHADOWED = "version 1, all requests copied for version 2"
#: Both versions compute the same, so half of the rate is the shadow's own compute; it may cost a twentieth more.
SHARE = 0.95 / 2


@dataclass
class ShadowRow:
    """Rate of a version that is bound by its compute."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="shadow",
            title=f"Compute-bound convolution net in two equal versions, HTTP binary, {CONNECTIONS} connections",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(SHADOWED, ALONE, SHARE),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """One server, without a shadow and with one."""
        endpoint = fleet.alipes_on("shadow", _two_versions())
        endpoint.check(work(CONV, BINARY))
        return [Cell(ALONE, partial(_alone, endpoint)), Cell(SHADOWED, partial(_shadowed, endpoint))]


def _two_versions() -> Path:
    root = WORK / "shadow"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(repository(CONV) / CONV, root / CONV)
    shutil.copytree(root / CONV / "1", root / CONV / "2")
    with (root / CONV / "config.pbtxt").open("a") as config:
        config.write("version_policy { all { } }\n")
    return root


def _alone(endpoint: Endpoint, seconds: float) -> Sample:
    _divide(endpoint, {"weights": {"1": 1}})
    return Sample(_rate(endpoint, seconds))


def _shadowed(endpoint: Endpoint, seconds: float) -> Sample:
    _divide(endpoint, {"weights": {"1": 1}, "shadow": {"version": 2}})
    rate = _rate(endpoint, seconds)
    outcomes = probe.get_json(endpoint.http_port, f"/v2/models/{CONV}/traffic/outcomes")
    return Sample(rate, {"copies": outcomes["2"]["comparison"]})


def _divide(endpoint: Endpoint, settings: dict[str, object]) -> None:
    probe.post(endpoint.http_port, f"/v2/models/{CONV}/traffic", json.dumps(settings).encode(), {})


def _rate(endpoint: Endpoint, seconds: float) -> float:
    return wrk.post(endpoint.http_port, work(CONV, BINARY), CONNECTIONS, seconds).rate
