"""A model that is bound by its arithmetic, beside a raw loop over the same engine with the same batches."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.fleet import ALIPES, Fleet
from bench.load import wrk
from bench.models.repository import repository
from bench.rows import raw_loop
from bench.rows.row import Better, Cell, Facts, Sample, Target
from bench.servers import probe
from bench.servers.endpoint import Endpoint
from bench.servers.process import StartFailed
from bench.work import BINARY, work

#: Twice the largest batch: the next one is complete when the instance becomes free.
CONNECTIONS = 16
RAW = "raw ONNX Runtime loop"


@dataclass
class ConvRow:
    """Rows of the convolution net in a second."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            name="conv",
            title=f"Compute-bound convolution net, HTTP binary, {CONNECTIONS} connections",
            unit="requests/s",
            better=Better.MORE,
            targets=(Target("alipes", RAW, 0.97),),
        )
    )
    #: How often alipes formed a batch of each size in the latest round.
    _batches: dict[int, int] = field(default_factory=dict)

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes first, as the loop repeats its batches."""
        endpoint = fleet.endpoint(ALIPES, work("conv", BINARY))
        if endpoint is None:
            return []
        return [Cell("alipes", lambda seconds: self._alipes(endpoint, seconds)), Cell(RAW, self._raw)]

    def _alipes(self, endpoint: Endpoint, seconds: float) -> Sample:
        before = _batch_counts(endpoint)
        measurement = wrk.post(endpoint.http_port, work("conv", BINARY), CONNECTIONS, seconds)
        after = _batch_counts(endpoint)
        self._batches = {size: count - before.get(size, 0) for size, count in after.items()}
        self._batches = {size: count for size, count in self._batches.items() if count > 0}
        return Sample(measurement.rate, {**measurement.as_json(), "batches": dict(self._batches)})

    def _raw(self, seconds: float) -> Sample:
        model = repository() / "conv" / "1" / "model.onnx"
        command = [sys.executable, str(Path(raw_loop.__file__)), str(model), str(seconds), json.dumps(self._batches)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise StartFailed(f"the raw loop failed:\n{done.stderr[-2000:]}")
        return Sample(float(done.stdout), {"batches": dict(self._batches)})


def _batch_counts(endpoint: Endpoint) -> dict[int, int]:
    """Executions so far by batch size, from the server's statistics."""
    statistics = probe.get_json(endpoint.http_port, "/v2/models/conv/stats")["model_stats"][0]
    return {int(batch["batch_size"]): int(batch["compute_infer"]["count"]) for batch in statistics["batch_stats"]}
