"""A tensor that lies in memory that client and server share, against the same tensor sent."""

import json
import os
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet import ALIPES, Fleet
from bench.load.h2load import Streams
from bench.models.repository import SERVED_TOGETHER
from bench.rows.load import RATE, Contender, LoadRow
from bench.rows.row import Better, Cell, Facts, Target
from bench.servers.endpoint import Endpoint
from bench.work import BINARY, REGION, SHARED, Work, work

SHARED_LABEL = "alipes, shared memory"
SENT_LABEL = "alipes, HTTP binary"
BOUND = 2.0


@dataclass(frozen=True)
class SharedRow:
    """The same picture, named and sent."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="image_shared",
            title="3x224x224 FP32, system shared memory against HTTP binary, 4 connections",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(SHARED_LABEL, SENT_LABEL, BOUND),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Both ways into the one server."""
        picture = work("image", SHARED)
        _share(fleet.alipes(*SERVED_TOGETHER[picture.model.backend]), picture)
        contenders = (
            Contender(SHARED_LABEL, ALIPES, picture),
            Contender(SENT_LABEL, ALIPES, work("image", BINARY)),
        )
        return LoadRow(self.facts, contenders, Streams(4, 1)).cells(fleet)


def _share(endpoint: Endpoint, picture: Work) -> None:
    """Puts the tensor where the server sees it. The object loses its name at once, so that it goes with the server."""
    row = picture.model.row()
    path = Path("/dev/shm") / f"alipes_bench_{os.getpid()}"
    path.write_bytes(row.tobytes())
    try:
        _post(endpoint, f"{REGION}/unregister", {})
        _post(endpoint, f"{REGION}/register", {"key": f"/{path.name}", "byte_size": row.nbytes})
    finally:
        path.unlink()


def _post(endpoint: Endpoint, what: str, document: dict[str, object]) -> None:
    url = f"http://127.0.0.1:{endpoint.http_port}/v2/systemsharedmemory/region/{what}"
    with urllib.request.urlopen(url, json.dumps(document).encode(), timeout=30):
        pass
