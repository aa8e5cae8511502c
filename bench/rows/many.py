"""A thousand small models in one server: what they cost the one that is busy, and what each costs in memory."""

import os
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
from bench.servers import alipes
from bench.servers.endpoint import Endpoint
from bench.work import JSON, work

SMALL = "mlp"
MODELS = 1000
CONNECTIONS = 64
ALONE = "the only model"
AMONG = f"one of {MODELS + 1:,} models"
KEPT_SHARE = 0.95
PER_MODEL = "resident memory for each loaded model"


@dataclass
class ManyRow:
    """Rate of one model, alone and among a thousand."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="many_models",
            title=f"HTTP JSON, {CONNECTIONS} connections, one busy model",
            unit=RATE,
            better=Better.MORE,
            targets=(Target(AMONG, ALONE, KEPT_SHARE),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Two servers with the same load."""
        cells = []
        for label, endpoint in ((ALONE, fleet.alipes(SMALL)), (AMONG, fleet.alipes_on("many", many_models()))):
            endpoint.check(work(SMALL, JSON))
            cells.append(Cell(label, partial(_rate, endpoint)))
        return cells


@dataclass
class ManyMemoryRow:
    """Memory that loaded models hold."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="many_models_memory",
            title=f"{MODELS:,} loaded small models",
            unit="bytes",
            better=Better.LESS,
            targets=(Target(PER_MODEL),),
            once=True,
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """One reading, of two servers that have not been busy."""
        return [Cell(PER_MODEL, _memory)]


def many_models() -> Path:
    """A repository with the small model under a thousand further names, whose files are one file."""
    root = WORK / "many_models"
    shutil.rmtree(root, ignore_errors=True)
    source = repository(SMALL) / SMALL
    shutil.copytree(source, root / SMALL)
    for number in range(MODELS):
        folder = root / f"{SMALL}_{number}"
        (folder / "1").mkdir(parents=True)
        os.link(root / SMALL / "1" / "model.onnx", folder / "1" / "model.onnx")
        text = (source / "config.pbtxt").read_text()
        (folder / "config.pbtxt").write_text(text.replace(f'name: "{SMALL}"', f'name: "{folder.name}"'))
    return root


def _rate(endpoint: Endpoint, seconds: float) -> Sample:
    measurement = wrk.post(endpoint.http_port, work(SMALL, JSON), CONNECTIONS, seconds)
    return Sample(measurement.rate, dict(measurement.as_json()))


def _memory(seconds: float) -> Sample:
    held = []
    for folder in (repository(SMALL), many_models()):
        endpoint = alipes.start(folder, "alipes_many_memory")
        with endpoint.process:
            held.append(endpoint.process.resident_bytes())
    return Sample((held[1] - held[0]) / MODELS, {"resident_bytes": held})
