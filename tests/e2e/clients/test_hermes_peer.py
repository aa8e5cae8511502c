"""The real hermes, in an environment of its own, asks and watches a server of ours."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checkout import ROOT
from support.detectors import BATCH, STRIDE, UPDATES, write_repository
from support.server import ServerProcess

PYTHON = ROOT / ".venv-clients" / "hermes" / "bin" / "python"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        not (PYTHON.parents[1] / "made").exists(), reason="hermes is not there: `make clients` brings it"
    ),
    pytest.mark.timeout(300),
]

REQUESTS = 6

# Its monitor does not say when it has looked for the first time: sequences follow until its record has every model.
PROGRAM = """
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
print(json.dumps({"streams": streams, "channel": found[0].tolist(), "watched": sorted(watched())}))
"""


def ask_and_watch(server: ServerProcess, record: Path) -> dict[str, object]:
    """What the real client found, while the real monitor wrote its record."""
    (host, grpc_port), metrics_port = server.grpc.split(":"), server.metrics.rpartition(":")[2]
    sizes = [str(BATCH * STRIDE), str(REQUESTS)]
    ran = subprocess.run(
        [str(PYTHON), "-c", PROGRAM, host, grpc_port, metrics_port, *sizes, str(record)],
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, object] = json.loads(ran.stdout)
    return found


def test_hermes_streams_into_our_own_streaming_models(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    write_repository(tmp_path / "models")
    found = ask_and_watch(serve(tmp_path / "models"), tmp_path / "record.csv")
    late = (UPDATES - 1) * STRIDE
    samples = REQUESTS * BATCH * STRIDE
    assert found["streams"] == [{"network/strain": [1, 2, BATCH * STRIDE]}]
    assert found["channel"] == [0.0] * late + [float(count) for count in range(samples - late)]
    assert found["watched"] == ["aggregator", "network", "snapshotter"]
