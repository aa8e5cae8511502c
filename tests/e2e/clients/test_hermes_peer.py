"""The real hermes and ours in one fleet: each exports what is served here, asks for it and watches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checkout import ROOT
from support.detectors import BATCH, STRIDE, UPDATES, WINDOW, write_repository
from support.server import ServerProcess

HERMES = ROOT / ".venv-clients" / "hermes"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not (HERMES / "made").exists(), reason="hermes is not there: `make clients` brings it"),
    pytest.mark.timeout(300),
]

REQUESTS = 6

# The repository of `support.detectors`, out of PyTorch.
EXPORT = """
import sys
import torch
from hermes import quiver as qv

class Unchanged(torch.nn.Module):
    def forward(self, strain):
        return strain * 1

folder, platform, window, stride, batch, updates = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
more = {"platform": qv.Platform[platform]} if platform else {}
repo = qv.ModelRepository(folder)
network = repo.add("network", platform=qv.Platform.ONNX)
network.export_version(Unchanged(), input_shapes={"strain": (None, 2, window)}, output_names=["cleaned"])
ensemble = repo.add("detectors", platform=qv.Platform.ENSEMBLE)
ensemble.add_streaming_inputs([network.inputs["strain"]], stream_size=stride, batch_size=batch, **more)
ensemble.add_streaming_output(network.outputs["cleaned"], stride, updates, batch_size=batch, **more)
for name in ("snapshotter", "aggregator"):
    repo.models[name].config.sequence_batching.max_sequence_idle_microseconds = 600_000_000
    repo.models[name].config.write()
ensemble.export_version(None)
"""

# Its monitor does not say when it has looked for the first time: sequences follow until its record has every model.
ASK = """
import json, sys, time
from pathlib import Path
import numpy as np
from hermes.aeriel.client import InferenceClient
from hermes.aeriel.monitor import ServerMonitor

host, grpc_port, metrics_port, samples, requests, record = sys.argv[1], *map(int, sys.argv[2:6]), Path(sys.argv[6])
client = InferenceClient(f"{host}:{grpc_port}", "detectors", callback=lambda y, request, sequence: (y, request))
monitor = ServerMonitor("detectors", host, record, grpc_port=grpc_port, metrics_port=metrics_port, name="monitor")
count = np.arange(requests * samples, dtype=np.float32)
strain = np.stack([count, -count])

def stream(sequence):
    answers = {}
    for request in range(requests):
        update = strain[:, request * samples : (request + 1) * samples]
        flags = {"sequence_start": request == 0, "sequence_end": request + 1 == requests}
        client.infer(update, request_id=request, sequence_id=sequence, **flags)
        while request in (0, requests - 1) and len(answers) <= request:
            for answer, number in client.get(until_empty=True):
                answers[number] = answer[0]
            time.sleep(1e-3)
    return np.concatenate([answers[request] for request in range(requests)], axis=-1)

def watched():
    return {line.split(",")[2] for line in record.read_text().splitlines()[1:]} if record.exists() else set()

with client, monitor:
    sequence = 1001
    found = stream(sequence)
    while len(watched()) < 3:
        sequence += 1
        assert (stream(sequence) == found).all()
streams = [names for _, names in client.states]
print(json.dumps({"streams": streams, "channels": found.tolist(), "watched": sorted(watched())}))
"""


def run(program: str, *arguments: object, theirs: bool) -> str:
    """What a program prints, under the real hermes or under ours."""
    ours = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    path = os.pathsep.join([str(HERMES), *ours] if theirs else ours)
    words = [sys.executable, "-c", program if theirs else f"import alipes.compat.hermes\n{program}"]
    ran = subprocess.run(
        [*words, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def check_answers(server: ServerProcess, record: Path, *, theirs: bool) -> None:
    """A client finds the stream and gets the means, while a monitor sees every model."""
    (host, grpc_port), metrics_port = server.grpc.split(":"), server.metrics.rpartition(":")[2]
    found = json.loads(
        run(ASK, host, grpc_port, metrics_port, BATCH * STRIDE, REQUESTS, record, theirs=theirs).splitlines()[-1]
    )
    late, samples = (UPDATES - 1) * STRIDE, REQUESTS * BATCH * STRIDE
    counted = [0.0] * late + [float(count) for count in range(samples - late)]
    # Triton's client gives shapes as lists, and so do documents.
    assert [{name: list(shape) for name, shape in names.items()} for names in found["streams"]] == [
        {"network/strain": [1, 2, BATCH * STRIDE]}
    ]
    assert found["channels"] == [counted, [-count for count in counted]]
    assert found["watched"] == ["aggregator", "network", "snapshotter"]


def test_hermes_streams_into_our_own_streaming_models(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    write_repository(tmp_path / "models")
    check_answers(serve(tmp_path / "models"), tmp_path / "record.csv", theirs=True)


@pytest.mark.extra("torch")
@pytest.mark.parametrize("platform", ["", "ONNX"], ids=["own", "onnx"])
def test_hermes_streams_into_what_we_export(tmp_path: Path, serve: Callable[..., ServerProcess], platform: str) -> None:
    run(EXPORT, tmp_path / "models", platform, WINDOW, STRIDE, BATCH, UPDATES, theirs=False)
    check_answers(serve(tmp_path / "models"), tmp_path / "record.csv", theirs=True)


@pytest.mark.extra("torch")
def test_what_hermes_exports_is_served_to_both_clients(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    run(EXPORT, tmp_path / "models", "", WINDOW, STRIDE, BATCH, UPDATES, theirs=True)
    server = serve(tmp_path / "models")
    for theirs in (True, False):
        check_answers(server, tmp_path / f"record-{theirs}.csv", theirs=theirs)
