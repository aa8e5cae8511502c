"""Samples run on every instance before it serves, whatever runs the model, and at every start of a process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.endpoints import HttpEndpoint, Refusal
from support.models import add_model
from support.notes import Notes
from support.processes import workers_of
from support.python_models import DECOUPLED, add_python_model, instances
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]

EXPLICIT = "--model-control-mode=explicit"

# Gives the sums of all that this process has executed, in their order.
REMEMBERS = """
class TritonPythonModel:
    def initialize(self, args):
        self.sums = []

    def execute(self, requests):
        self.sums += [int(given(request).sum()) for request in requests]
        return [answer(Y=np.array(self.sums, np.int32)) for _ in requests]
"""


def sample(name: str, data: str, *, size: int = 2, count: int = 1, datatype: str = "INT32", batch: int = 1) -> str:
    """A sample with the input X."""
    value = f"data_type: TYPE_{datatype} dims: [ {size} ] {data}"
    inputs = f'inputs {{ key: "X" value: {{ {value} }} }}'
    return f'model_warmup {{ name: "{name}" batch_size: {batch} count: {count} {inputs} }}\n'


def add_file(folder: Path, name: str, values: Any) -> str:
    """A file of the model's samples, and how a sample names it."""
    (folder / "warmup").mkdir(exist_ok=True)
    (folder / "warmup" / name).write_bytes(np.array(values).tobytes())
    return f'input_data_file: "{name}"'


def reason(start: Start, model: str) -> str:
    """Why a model was not loaded."""
    with HttpEndpoint(start(all_load=False)) as endpoint:
        return endpoint.index(model)["reason"]


def test_every_instance_of_an_onnx_model_runs_every_sample(repository: Path, start: Start) -> None:
    samples = [
        sample("zeros", "zero_data: true", datatype="FP32", count=3),
        sample("randoms", "random_data: true", datatype="FP32", batch=4),
        sample("filed", 'input_data_file: "two"', datatype="FP32"),
        sample("skipped", "zero_data: true", datatype="FP32", batch=0),
    ]
    folder = add_model(repository, "m", config=f"max_batch_size: 8 {instances(2)} {''.join(samples)}")
    add_file(folder, "two", np.array([1, 2], np.float32))
    with HttpEndpoint(start()) as endpoint:
        statistics = endpoint.statistics("m")
        assert (statistics["inference_count"], statistics["execution_count"]) == (2 * (3 + 4 + 1), 2 * (3 + 1 + 1))
        assert {one["batch_size"]: one["compute_infer"]["count"] for one in statistics["batch_stats"]} == {1: 8, 4: 2}
        assert endpoint.ask("m", {"X": np.ones((1, 2), np.float32)})["Y"].tolist() == [[2, 2]]


def test_a_file_is_what_the_model_sees(repository: Path, start: Start) -> None:
    folder = add_python_model(repository, "m", REMEMBERS, config=sample("filed", 'input_data_file: "longer"'))
    add_file(folder, "longer", np.array([30, 4, 99], np.int32))
    with HttpEndpoint(start()) as endpoint:
        assert endpoint.ask("m", {"X": [1]})["Y"].tolist() == [34, 1]


def test_strings_come_from_files_and_are_empty_elsewhere(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def initialize(self, args):
            self.seen = []

        def execute(self, requests):
            self.seen += [b"|".join(given(request)) for request in requests]
            return [answer(Y=np.array(self.seen, object)) for _ in requests]
    """
    samples = "".join(
        sample(name, data, datatype="STRING")
        for name, data in {"z": "zero_data: true", "r": "random_data: true", "f": 'input_data_file: "words"'}.items()
    )
    folder = add_python_model(repository, "m", source, signature="X: BYTES[-1] -> Y: BYTES[-1]", config=samples)
    add_file(folder, "words", np.frombuffer(b"\x02\0\0\0ab\x01\0\0\0c", np.uint8))
    with HttpEndpoint(start()) as endpoint:
        assert endpoint.ask("m", {"X": ["d"]})["Y"].tolist() == [b"|", b"|", b"ab|c", b"d"]


def test_a_model_is_not_ready_before_its_samples_have_run(repository: Path, start: Start, notes: Notes) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            note("begun")
            await_note("go")
            return [answer(Y=given(request)) for request in requests]
    """
    add_python_model(repository, "m", source, config=sample("s", "zero_data: true"))
    server = start(EXPLICIT)
    with HttpEndpoint(server) as loading, HttpEndpoint(server) as endpoint:
        load = threading.Thread(target=loading.load, args=("m",))
        load.start()
        notes.read("begun")
        assert not endpoint.is_ready("m")
        with pytest.raises(Refusal):
            endpoint.ask("m", {"X": [1]})
        notes.write("go")
        load.join()
        assert endpoint.ask("m", {"X": [1]})["Y"].tolist() == [1]


def test_a_process_that_is_started_again_warms_up_again(repository: Path, start: Start) -> None:
    add_python_model(repository, "m", REMEMBERS, config=sample("s", "zero_data: true", count=2))
    server = start()
    with HttpEndpoint(server) as endpoint:
        assert endpoint.ask("m", {"X": [1]})["Y"].tolist() == [0, 0, 1]
        (worker,) = workers_of(server)
        os.kill(worker.pid, signal.SIGKILL)
        server.wait_for_output("takes requests again")
        assert endpoint.ask("m", {"X": [2]})["Y"].tolist() == [0, 0, 2]


def test_an_instance_that_comes_later_warms_up_too(repository: Path, start: Start) -> None:
    zeros = {
        "engine": sample("s", "zero_data: true", datatype="FP32", count=5),
        "process": sample("s", "zero_data: true", count=5),
    }
    ports = 'input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "Y" data_type: TYPE_FP32 dims: 2 }'
    engine = f'backend: "onnxruntime" max_batch_size: 8 {ports} {zeros["engine"]}'
    add_model(repository, "engine", config=engine + instances(1))
    folder = add_python_model(repository, "process", config=zeros["process"])
    process = (folder / "config.pbtxt").read_text()
    with HttpEndpoint(start(EXPLICIT, "--load-model=*")) as endpoint:
        assert [endpoint.statistics(model)["inference_count"] for model in zeros] == [5, 5]
        (repository / "engine" / "config.pbtxt").write_text(engine + instances(3))
        (folder / "config.pbtxt").write_text(process.replace(instances(1), instances(3)))
        for model in zeros:
            endpoint.load(model)
            assert endpoint.statistics(model)["inference_count"] == 15


def test_a_decoupled_model_may_answer_a_sample_as_often_as_it_likes(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            for request in requests:
                sender = request.get_response_sender()
                for number in range(1000):
                    sender.send(answer(Y=np.array([number], np.int32)))
                sender.send(flags=FINAL)
            note("done")
    """
    add_python_model(repository, "m", source, config=DECOUPLED + sample("s", "zero_data: true"))
    with HttpEndpoint(start()) as endpoint:
        assert endpoint.is_ready("m")


def test_a_sample_that_fails_fails_the_load_and_is_named(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            return [pb_utils.InferenceResponse(error=pb_utils.TritonError("too cold")) for _ in requests]
    """
    add_python_model(repository, "m", source, config=sample("zeros", "zero_data: true"))
    assert reason(start, "m").endswith("failed to run warmup sample 'zeros': too cold; ")


def test_a_sample_that_ends_the_process_fails_the_load(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            os.kill(os.getpid(), signal.SIGSEGV)
    """
    add_python_model(repository, "m", source, config=sample("zeros", "zero_data: true"))
    assert "SIGSEGV" in reason(start, "m")


def test_a_sample_of_a_wrong_shape_is_refused_like_a_request(repository: Path, start: Start) -> None:
    wrong = sample("s", "zero_data: true", datatype="FP32", size=3)
    add_model(repository, "m", config=f"max_batch_size: 8 {wrong}")
    expected = "unexpected shape for input 'X' for model 'm'. Expected [-1,2], got [1,3]"
    assert expected in reason(start, "m")


def test_no_process_is_left_of_a_model_whose_sample_fails(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            raise ValueError("too cold")
    """
    add_python_model(repository, "m", source, config=sample("s", "zero_data: true") + instances(2))
    server = start(all_load=False)
    until(lambda: not workers_of(server))
