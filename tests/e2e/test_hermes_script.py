"""A script of hermes' users, as it stands: repository, streaming ensemble, server, client and monitor in a page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

CHANNELS, WINDOW = 2, 8

SCRIPT = """\
import sys

import numpy as np

from hermes import quiver as qv
from hermes.aeriel.client import InferenceClient
from hermes.aeriel.monitor import ServerMonitor
from hermes.aeriel.serve import serve
from hermes.cloudbreak.clouds import google as cb

repo = qv.ModelRepository("model-repo", clean=True)
model = repo.add("network", platform=qv.Platform.ONNX)
print(model.export_version("network.onnx"))
ensemble = repo.add("streaming", platform=qv.Platform.ENSEMBLE)
ensemble.add_streaming_inputs(model.inputs["hoft"], stream_size=2, batch_size=1)
snapshotter = repo.models["snapshotter"]
snapshotter.config.sequence_batching.max_sequence_idle_microseconds = int(25 * 10**6)
snapshotter.config.write()
ensemble.add_output(model.outputs["prob"])
print(ensemble.export_version(None))

hoft = np.random.default_rng(0).integers(100, size=(2, 128)).astype("float32")
updates = hoft.shape[1] // 2


class Callback:
    def __init__(self):
        self.y = np.zeros(updates)

    def __call__(self, response, request_id, sequence_id):
        self.y[request_id] = response[0, 0]
        if request_id + 1 == updates:
            return self.y


with serve("model-repo", gpus=[0]) as instance:
    instance.wait()
    client = InferenceClient("localhost:8001", model_name="streaming", model_version=1, callback=Callback())
    monitor = ServerMonitor("streaming", ips="localhost", filename="stats.csv", model_version=1, name="monitor")
    with client, monitor:
        for i in range(updates):
            client.infer(
                hoft[:, 2 * i : 2 * i + 2],
                request_id=i,
                sequence_id=1001,
                sequence_start=i == 0,
                sequence_end=i + 1 == updates,
            )
        while True:
            results = client.get()
            if results is not None:
                break

np.savez("results.npz", hoft=hoft, results=results)
try:
    cb.VMManager("description")
except NotImplementedError as error:
    print(error)
"""


def write_network(file: Path) -> None:
    """The sum of each window."""
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["hoft"], ["flat"]),
            helper.make_node("ReduceSum", ["flat"], ["prob"], axes=[1], keepdims=1),
        ],
        "network",
        [helper.make_tensor_value_info("hoft", TensorProto.FLOAT, ["batch", CHANNELS, WINDOW])],
        [helper.make_tensor_value_info("prob", TensorProto.FLOAT, ["batch", 1])],
    )
    onnx.save(helper.make_model(graph, ir_version=7, opset_imports=[helper.make_opsetid("", 12)]), file)


@pytest.mark.timeout(300)
def test_a_script_runs_as_it_stands(tmp_path: Path) -> None:
    write_network(tmp_path / "network.onnx")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "alipes.compat", "hermes", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    paths = done.stdout.splitlines()
    assert [line for line in paths if line.endswith((".onnx", ".empty"))] == [
        "network/1/model.onnx",
        "streaming/1/model.empty",
    ]
    assert "hermes.cloudbreak.clouds.google.VMManager is not offered: alipes makes clusters" in done.stdout

    with np.load(tmp_path / "results.npz") as saved:
        hoft, results = saved["hoft"], saved["results"]
    padded = np.concatenate([np.zeros((CHANNELS, WINDOW - 2), np.float32), hoft], axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW, axis=1)[:, ::2]
    np.testing.assert_array_equal(results, windows.sum(axis=(0, 2)))

    head = (tmp_path / "stats.csv").read_text().splitlines()[0]
    assert head == "timestamp,ip,model,count,queue,compute_input,compute_infer,compute_output,request"
