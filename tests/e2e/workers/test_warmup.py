"""Samples run on every instance before it serves, whatever runs the model, and at every start of a process."""

from __future__ import annotations

import ast
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.endpoints import HttpEndpoint, Refusal
from support.models import add_model
from support.notes import Notes
from support.processes import workers_of
from support.python_models import DECOUPLED, add_python_model, instances
from support.sequence_callers import Caller
from support.sequences import add_chain
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


def inputs(**values: str) -> str:
    """A sample with these inputs: a datatype, sizes and data of each."""
    entries = (f'inputs {{ key: "{name}" value: {{ data_type: TYPE_{value} }} }}' for name, value in values.items())
    return f'model_warmup {{ name: "s" batch_size: 1 {" ".join(entries)} }}\n'


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


# A sequence model's controls, and what the server keeps for it.
SEQUENCES = """
max_batch_size: 4
sequence_batching {
    max_sequence_idle_microseconds: 600000000
    control_input [
        { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
        { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] },
        { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } ] }
    ]
    state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ -1 ] } ]
}
"""

# What a sample brings of them: none of it what a sequence of the server's begins with.
BROUGHT = inputs(
    X="INT32 dims: [ 1 ] zero_data: true",
    START="INT32 dims: [ 1 ] zero_data: true",
    READY="FP32 dims: [ 1 ] zero_data: true",
    ID='STRING dims: [ 1 ] input_data_file: "id"',
    OLD='INT32 dims: [ 2 ] input_data_file: "old"',
)


def test_a_sample_may_bring_the_controls_and_states_of_its_sequence(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def initialize(self, args):
            self.seen = []

        def execute(self, requests):
            self.seen += [self.one(request) for request in requests]
            text = np.array([[repr(self.seen)]], object)
            return [answer(Y=text, NEW=given(request, "OLD")) for request in requests]

        def one(self, request):
            return [given(request, name).tolist() for name in ("START", "READY", "ID", "OLD")]
    """
    folder = add_python_model(
        repository, "m", source, signature="X: INT32[1] -> Y: BYTES[1]", config=SEQUENCES + BROUGHT
    )
    add_file(folder, "id", np.frombuffer(b"\x03\0\0\0cup", np.uint8))
    add_file(folder, "old", np.array([7, 8], np.int32))
    server = start()
    with Caller(server, "http") as caller:
        ((text,),) = caller.step("m", "tea", {"X": [[1]]}, start=True)["Y"]
    brought, asked = ast.literal_eval(text.decode())
    assert brought == [[[0]], [[0.0]], [[b"cup"]], [[7, 8]]]
    assert asked == [[[1]], [[1.0]], [[b"tea"]], [[0]]]


def test_a_sample_of_an_engine_brings_controls_and_states_too(repository: Path, start: Start) -> None:
    ports = """backend: "onnxruntime"
        input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
        output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
        instance_group [ { kind: KIND_CPU count: 1 } ]
        max_batch_size: 4
        sequence_batching {
            control_input [
                { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] }
            ]
            state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ] } ]
        }
    """
    # Fails where START is not 2, which only a sample can bring.
    samples = inputs(
        X="INT32 dims: [ 1 ] zero_data: true",
        START='INT32 dims: [ 1 ] input_data_file: "two"',
        OLD='INT32 dims: [ 1 ] input_data_file: "two"',
    )
    for name in ("brings", "brings_not"):
        sample_ = samples if name == "brings" else inputs(X="INT32 dims: [ 1 ] zero_data: true")
        folder = add_model(repository, name, needs_two(), config=ports + sample_)
        add_file(folder, "two", np.array([2], np.int32))
    with HttpEndpoint(start(all_load=False)) as endpoint:
        assert endpoint.index("brings")["state"] == "READY"
        assert "indices element out of data bounds" in endpoint.index("brings_not")["reason"]


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (
            "FP32 dims: [ 1 ] zero_data: true",
            "inference input 'START' data-type is 'FP32', but model 'm' expects 'INT32'",
        ),
        (
            "INT32 dims: [ 2 ] zero_data: true",
            "unexpected shape for input 'START' for model 'm'. Expected [1], got [2]",
        ),
    ],
)
def test_a_control_of_a_sample_fits_the_models(repository: Path, start: Start, control: str, message: str) -> None:
    wrong = inputs(X="INT32 dims: [ 1 ] zero_data: true", START=control)
    add_python_model(repository, "m", signature="X: INT32[1] -> Y: INT32[1]", config=SEQUENCES + wrong)
    assert message in reason(start, "m")


def needs_two() -> onnx.ModelProto:
    """``Y = NEW = X`` where START and OLD are 2 in each row, else an error; all INT32 ``[batch, 1]``."""
    names = ("X", "START", "OLD", "Y", "NEW")
    ports = [helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 1]) for name in names]
    constants = [
        helper.make_tensor("zero", TensorProto.INT32, [1], [0]),
        helper.make_tensor("two", TensorProto.INT32, [], [2]),
    ]
    nodes = [
        helper.make_node("Sub", ["START", "two"], ["start"]),
        helper.make_node("Sub", ["OLD", "two"], ["old"]),
        helper.make_node("Add", ["start", "old"], ["both"]),
        # There is one element: any place but the first is an error.
        helper.make_node("Gather", ["zero", "both"], ["none"]),
        helper.make_node("Add", ["X", "none"], ["Y"]),
        helper.make_node("Identity", ["Y"], ["NEW"]),
    ]
    graph = helper.make_graph(nodes, "model", ports[:3], ports[3:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 4 }"])
def test_a_sample_has_as_many_rounds_as_its_model_wants(repository: Path, start: Start, strategy: str) -> None:
    source = """
    class TritonPythonModel:
        def initialize(self, args):
            self.rounds = []

        def execute(self, requests):
            answers = []
            for number, request in enumerate(requests):
                self.rounds.append(int(given(request, "START").flat[0]))
                if len(self.rounds) % 5 == 0 or number > 0:
                    answers.append(answer(Y=np.array([self.rounds], np.int32)))
                else:
                    request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                    answers.append(None)
            return answers
    """
    iterative = f"""
    max_batch_size: 4
    sequence_batching {{ iterative_sequence: true {strategy}
        control_input [ {{ name: "START" control [ {{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }} ] }} ]
    }}
    """
    samples = sample("s", "zero_data: true", size=1, batch=2, count=2)
    add_python_model(repository, "m", source, signature="X: INT32[1] -> Y: INT32[-1]", config=iterative + samples)
    with HttpEndpoint(start()) as endpoint:
        # Two requests in the first round, of which one is done; the other one has three more.
        rounds = [1, 1, 0, 0, 0]
        assert endpoint.ask("m", {"X": [[0]]})["Y"].tolist() == [[*rounds, *rounds, 1, 0, 0, 0, 0]]
        assert endpoint.statistics("m")["inference_count"] == 3 * len(rounds)


def test_samples_run_in_order_until_one_fails(repository: Path, start: Start, notes: Notes) -> None:
    source = """
    class TritonPythonModel:
        def execute(self, requests):
            note(f"saw {given(requests[0]).size}")
            if given(requests[0]).size == 2:
                raise ValueError("too cold")
            return [answer(Y=given(request)) for request in requests]
    """
    samples = "".join(sample(f"of {size}", "random_data: true", size=size) for size in (1, 2, 3))
    add_python_model(repository, "m", source, config=samples)
    text = reason(start, "m")
    assert "failed to run warmup sample 'of 2': " in text
    assert "too cold" in text
    assert notes.names() == {"saw 1", "saw 2"}


def test_an_optional_input_may_be_left_out_of_a_sample(repository: Path, start: Start) -> None:
    source = """
    class TritonPythonModel:
        def initialize(self, args):
            self.seen = []

        def execute(self, requests):
            for request in requests:
                self.seen += [len(request.inputs()), int(sum(np.sum(one.as_numpy()) for one in request.inputs()))]
            return [answer(Y=np.array(self.seen, np.int32)) for _ in requests]
    """
    samples = inputs(X="INT32 dims: [ 2 ] zero_data: true")
    samples += inputs(X="INT32 dims: [ 1 ] zero_data: true", Z='INT32 dims: [ 2 ] input_data_file: "two"')
    signature = "X: INT32[-1], Z: ?INT32[2] -> Y: INT32[-1]"
    folder = add_python_model(repository, "m", source, signature=signature, config=samples)
    add_file(folder, "two", np.array([4, 5], np.int32))
    with HttpEndpoint(start()) as endpoint:
        assert endpoint.ask("m", {"X": [1, 2, 3]})["Y"].tolist() == [1, 0, 2, 9, 1, 6]


def test_the_models_of_an_ensemble_warm_up_and_the_ensemble_counts_nothing(repository: Path, start: Start) -> None:
    warm = sample("s", "zero_data: true", datatype="FP32", count=3)
    add_model(repository, "m", config=f"max_batch_size: 8 {warm} {instances(1)}")
    add_chain(repository, "chain", [("m", "X", "Y"), ("m", "X", "Y")], [-1, 2], [-1, 2])
    with HttpEndpoint(start()) as endpoint:
        assert [endpoint.statistics(model)["inference_count"] for model in ("m", "chain")] == [3, 0]
        assert endpoint.ask("chain", {"IN": np.ones((1, 2), np.float32)})["OUT"].tolist() == [[4, 4]]


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
