"""A served model beside a raw loop over the same engine, which repeats the batches that the server formed."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.load.engine_loops import LOOP
from bench.load.tool import Measurement
from bench.paths import PROJECT
from bench.rows.row import CPU_US, Sample
from bench.servers import probe
from bench.servers.endpoint import Endpoint
from bench.servers.process import StartFailed


@dataclass(frozen=True)
class Engine:
    """What runs a file without a server."""

    #: A kind of `bench.load.engine_loops`.
    kind: str
    file: Path
    #: Shape of a row.
    dims: tuple[int, ...]
    python: Path = Path(sys.executable)


@dataclass
class Batches:
    """The batches that a server formed of one model in the latest round."""

    model: str
    counts: dict[int, int] = field(default_factory=dict)

    def served(self, endpoint: Endpoint, load: Callable[[], Measurement]) -> Sample:
        """Loads the server, and remembers the batches of that time."""
        before, cpu_before_s = self.counted(endpoint), endpoint.process.cpu_seconds()
        measurement = load()
        cpu_us = (endpoint.process.cpu_seconds() - cpu_before_s) / measurement.requests * 1e6
        grown = {size: count - before.get(size, 0) for size, count in self.counted(endpoint).items()}
        self.counts = {size: count for size, count in grown.items() if count > 0}
        detail = {**measurement.as_json(), "batches": dict(self.counts), CPU_US: cpu_us}
        return Sample(measurement.rate, detail)

    def raw(self, engine: Engine, seconds: float) -> Sample:
        """Runs batches of these sizes, in these proportions, in a bare loop.

        Raises:
            StartFailed: If the loop fails.
        """
        what: Sequence[str] = [str(engine.file), str(seconds), json.dumps(self.counts), json.dumps(engine.dims)]
        figures = json.loads(run_loop(engine, LOOP, *what))
        detail = {"batches": dict(self.counts), CPU_US: figures["cpu_us_per_row"]}
        return Sample(figures["rate"], detail)

    def counted(self, endpoint: Endpoint) -> dict[int, int]:
        """Executions so far by batch size, from the server's statistics."""
        statistics = probe.get_json(endpoint.http_port, f"/v2/models/{self.model}/stats")["model_stats"][0]
        return {int(batch["batch_size"]): int(batch["compute_infer"]["count"]) for batch in statistics["batch_stats"]}


def run_loop(engine: Engine, program: str, *arguments: str, rows: object = None) -> str:
    """What `bench.load.engine_loops` prints last.

    Raises:
        StartFailed: If it fails.
    """
    command = [str(engine.python), "-m", "bench.load.engine_loops", program, engine.kind, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=PROJECT, input=json.dumps(rows))
    if done.returncode != 0:
        raise StartFailed(f"the raw loop failed:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]
