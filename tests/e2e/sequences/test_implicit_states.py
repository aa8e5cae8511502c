"""What the server keeps for a sequence, whatever its datatype: how it begins, when it is renewed and forgotten."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.endpoints import HttpEndpoint
from support.models import add_model, remembers_last
from support.python_models import add_python_model
from support.sequence_callers import Caller
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

NO_START = "must specify the START flag on the first request of the sequence"


def strings(*texts: bytes) -> bytes:
    """Texts as they travel."""
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


# Two elements of each datatype, and the number of ONNX.
DATATYPES = {
    "BOOL": (TensorProto.BOOL, b"\1\0"),
    "UINT8": (TensorProto.UINT8, b"\xff\1"),
    "UINT16": (TensorProto.UINT16, struct.pack("<2H", 0xFFFF, 2)),
    "UINT32": (TensorProto.UINT32, struct.pack("<2I", 0xFFFFFFFF, 3)),
    "UINT64": (TensorProto.UINT64, struct.pack("<2Q", 2**64 - 1, 4)),
    "INT8": (TensorProto.INT8, b"\x80\5"),
    "INT16": (TensorProto.INT16, struct.pack("<2h", -(2**15), 6)),
    "INT32": (TensorProto.INT32, struct.pack("<2i", -(2**31), 7)),
    "INT64": (TensorProto.INT64, struct.pack("<2q", -(2**63), 8)),
    "FP16": (TensorProto.FLOAT16, np.array([-1.5, 9], np.float16).tobytes()),
    "FP32": (TensorProto.FLOAT, np.array([-1.5, 10], np.float32).tobytes()),
    "FP64": (TensorProto.DOUBLE, np.array([-1.5, 11], np.float64).tobytes()),
    "BF16": (TensorProto.BFLOAT16, b"\xc0\xbf\x30\x41"),
    "BYTES": (TensorProto.STRING, strings(b"\xff one", b"")),
}
# No bfloat16 in numpy.
OF_PYTHON = [datatype for datatype in DATATYPES if datatype != "BF16"]

# Gives all states, and keeps each with its two elements exchanged.
EXCHANGES = f"""
class TritonPythonModel:
    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        old = {{name: given(request, "OLD_" + name) for name in {OF_PYTHON}}}
        seen = {{"Y_" + name: array for name, array in old.items()}}
        return answer(**seen, **{{"NEW_" + name: array[:, ::-1] for name, array in old.items()}})
"""

INITIAL = 'initial_state {{ name: "i" data_type: TYPE_{datatype} dims: [ {size} ] {data} }}'


def config_name(datatype: str) -> str:
    return "STRING" if datatype == "BYTES" else datatype


def state(datatype: str, dims: str = "2", initial: str = "", *, suffix: str = "", more: str = "") -> str:
    """A state, with the data of its initial state."""
    datatype = config_name(datatype)
    begins = INITIAL.format(datatype=datatype, size=2, data=initial) if initial else ""
    names = f'input_name: "OLD{suffix}" output_name: "NEW{suffix}"'
    return f"state [ {{ {names} data_type: TYPE_{datatype} dims: [ {dims} ] {begins} {more} }} ]\n"


def sequences(states: str, max_batch_size: int = 4, idle_us: int = 600_000_000) -> str:
    scheduling = f"sequence_batching {{ max_sequence_idle_microseconds: {idle_us}\n{states} }}\n"
    return f"max_batch_size: {max_batch_size}\n{scheduling}"


def onnx_config(datatype: str, states: str, dims: str = "2", *, shown: bool = False, **scheduling: int) -> str:
    """The configuration of a model that `remembers_last` makes, whose state callers see where it is shown."""
    port = f"data_type: TYPE_{config_name(datatype)} dims: [ {dims} ]"
    outputs = "".join(f'output [ {{ name: "{name}" {port} }} ]\n' for name in ("Y", "NEW")[: 1 + shown])
    ports = f'backend: "onnxruntime"\ninput [ {{ name: "X" {port} }} ]\n{outputs}'
    return f"{ports}instance_group [ {{ kind: KIND_CPU count: 1 }} ]\n{sequences(states, **scheduling)}"


def add_initial(folder: Path, name: str, content: bytes) -> str:
    """A file that states begin with, and how a configuration names it."""
    (folder / "initial_state").mkdir(exist_ok=True)
    (folder / "initial_state" / name).write_bytes(content)
    return f'data_file: "{name}"'


def add_last(repository: Path, name: str, datatype: str, config: str, initial: bytes | None = None) -> None:
    size: int | str = "any" if "dims: [ -1 ]" in config else 2
    folder = add_model(repository, name, remembers_last(DATATYPES[datatype][0], size), config=config)
    if initial is not None:
        add_initial(folder, "first", initial)


def adds_from_table() -> onnx.ModelProto:
    """``Y = NEW = OLD + TABLE[X]`` where TABLE is 1, 10, 100; any other X is an error. All INT32 ``[batch, 1]``."""
    ports = [helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 1]) for name in ("X", "OLD", "Y", "NEW")]
    table = helper.make_tensor("TABLE", TensorProto.INT32, [3], [1, 10, 100])
    nodes = [
        helper.make_node("Gather", ["TABLE", "X"], ["more"]),
        helper.make_node("Add", ["OLD", "more"], ["NEW"]),
        helper.make_node("Identity", ["NEW"], ["Y"]),
    ]
    graph = helper.make_graph(nodes, "model", ports[:2], ports[2:], [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def two_states() -> onnx.ModelProto:
    """``Y = OLD``, ``NEW = X``, ``COUNT = OLD_N + 1``: a state of the caller's size and one number, FP32 and INT64."""
    floats = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["size"]) for name in ("X", "OLD", "Y", "NEW")]
    counts = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in ("OLD_N", "NEW_N", "COUNT")]
    nodes = [
        helper.make_node("Identity", ["OLD"], ["Y"]),
        helper.make_node("Identity", ["X"], ["NEW"]),
        helper.make_node("Add", ["OLD_N", "one"], ["NEW_N"]),
        helper.make_node("Identity", ["NEW_N"], ["COUNT"]),
    ]
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(
        nodes, "model", [*floats[:2], counts[0]], [floats[2], floats[3], counts[1], counts[2]], [one]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


MEMORY = {
    "same_buffer": "use_same_buffer_for_input_output: true",
    "growable": "use_same_buffer_for_input_output: true use_growable_memory: true",
    "growable_alone": "use_growable_memory: true",
}

# Initial states that cannot be, and the reason.
BROKEN = {
    "short": (
        'data_file: "short"',
        "initial_state setting expects 8 bytes, but the data provided from shortonly has 7",
    ),
    "absent": ('data_file: "absent"', "initial_state/absent"),
    "unset": ("", "initial_state setting expects state'OLD' to have state_data set"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    for datatype, (_, content) in DATATYPES.items():
        zeros, file = state(datatype, initial="zero_data: true"), state(datatype, initial='data_file: "first"')
        add_last(repository, f"zero_{datatype}", datatype, onnx_config(datatype, zeros))
        # What a file has too much is left alone; of strings it says how long they are.
        longer = content if datatype == "BYTES" else content + b"more"
        add_last(repository, f"file_{datatype}", datatype, onnx_config(datatype, file), longer)
    for name, flags in MEMORY.items():
        zeros = state("INT32", "-1", "zero_data: true", more=flags)
        add_last(repository, name, "INT32", onnx_config("INT32", zeros, "-1"))
    add_last(repository, "open", "INT32", onnx_config("INT32", state("INT32", "-1"), "-1", shown=True))
    add_last(
        repository,
        "hasty",
        "INT32",
        onnx_config("INT32", state("INT32", initial='data_file: "first"'), max_batch_size=1, idle_us=100_000),
        DATATYPES["INT32"][1],
    )
    single = onnx_config("INT32", state("INT32", "1"), "1")
    add_model(repository, "table", adds_from_table(), config=single)
    add_two(repository)
    add_python(repository)
    for name, (data, _) in BROKEN.items():
        begins = f'initial_state {{ name: "i" data_type: TYPE_INT32 dims: [ 2 ] {data} }}'
        add_last(repository, name, "INT32", onnx_config("INT32", state("INT32", more=begins)))
        add_initial(repository / name, "short", bytes(7))
    return serve_module(repository)


def add_two(repository: Path) -> None:
    states = state("FP32", "-1") + state("INT64", "1", suffix="_N")
    counts = 'output [ { name: "COUNT" data_type: TYPE_INT64 dims: [ 1 ] } ]\n'
    config = onnx_config("FP32", states, "-1", max_batch_size=0)
    add_model(repository, "two", two_states(), config=config + counts)


def add_python(repository: Path) -> None:
    shown = ", ".join(f"Y_{datatype}: {datatype}[2]" for datatype in OF_PYTHON)
    states = "".join(state(one, initial=f'data_file: "{one}"', suffix=f"_{one}") for one in OF_PYTHON)
    folder = add_python_model(
        repository, "all", EXCHANGES, signature=f"X: INT32[1] -> {shown}", config=sequences(states)
    )
    for datatype in OF_PYTHON:
        add_initial(folder, datatype, DATATYPES[datatype][1])


def step(server: ServerProcess, model: str, datatype: str, content: bytes, *, start: bool = False) -> bytes:
    """The bytes of the only output; what is sent has the shape ``[1, 2]``."""
    tensor = {"name": "X", "shape": [1, 2], "datatype": datatype, "parameters": {"binary_data_size": len(content)}}
    parameters = {"sequence_id": 1, "sequence_start": start, "binary_data_output": True}
    head = json.dumps({"parameters": parameters, "inputs": [tensor]}).encode()
    connection = http.client.HTTPConnection(server.http, timeout=60)
    try:
        length = {"Inference-Header-Content-Length": str(len(head))}
        connection.request("POST", f"/v2/models/{model}/infer", head + content, length)
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    assert response.status == 200, answer
    length_of_head = int(response.headers["Inference-Header-Content-Length"])
    assert json.loads(answer[:length_of_head])["outputs"][0]["shape"] == [1, 2]
    return answer[length_of_head:]


@pytest.mark.parametrize("datatype", DATATYPES)
def test_a_state_begins_with_zeros_or_a_file_whatever_its_datatype(server: ServerProcess, datatype: str) -> None:
    content = DATATYPES[datatype][1]
    zeros = strings(b"", b"") if datatype == "BYTES" else bytes(len(content))
    for model, first in ((f"zero_{datatype}", zeros), (f"file_{datatype}", content)):
        assert step(server, model, datatype, content, start=True) == first
        assert step(server, model, datatype, zeros) == content
        assert step(server, model, datatype, zeros) == zeros
        assert step(server, model, datatype, content, start=True) == first


def test_a_python_model_has_states_of_every_datatype(server: ServerProcess) -> None:
    with Caller(server, "grpc") as caller:
        first = caller.step("all", 1, {"X": [[0]]}, start=True)
        second = caller.step("all", 1, {"X": [[0]]})
        third = caller.step("all", 1, {"X": [[0]]}, end=True)
    assert first["Y_INT64"] == [[-(2**63), 8]]
    assert first["Y_BYTES"] == [[b"\xff one", b""]]
    assert first["Y_FP16"] == [[-1.5, 9]]
    assert second == {name: [rows[0][::-1]] for name, rows in first.items()}
    assert third == first
    assert len(first) == len(OF_PYTHON)


def test_a_state_of_any_size_has_one_element_until_it_is_renewed(server: ServerProcess) -> None:
    with Caller(server, "http") as caller:
        assert caller.step("open", 1, {"X": [[5, 6, 7]]}, start=True) == {"NEW": [[5, 6, 7]], "Y": [[0]]}
        assert caller.step("open", 1, {"X": [[8]]}) == {"NEW": [[8]], "Y": [[5, 6, 7]]}
        assert caller.step("open", 1, {"X": [[9, 9]]}, start=True) == {"NEW": [[9, 9]], "Y": [[0]]}


@pytest.mark.parametrize("model", MEMORY)
def test_states_grow_and_shrink_under_any_flag_of_their_memory(server: ServerProcess, model: str) -> None:
    with Caller(server, "grpc") as caller:
        assert caller.step(model, 1, {"X": [[1, 2, 3, 4]]}, start=True) == {"Y": [[0, 0]]}
        assert caller.step(model, 1, {"X": [[5]]}) == {"Y": [[1, 2, 3, 4]]}
        assert caller.step(model, 1, {"X": [[6]]}, end=True) == {"Y": [[5]]}


def test_states_are_renewed_whichever_outputs_a_request_wants(server: ServerProcess) -> None:
    def ask(values: list[float], *outputs: str, **flags: bool) -> dict[str, list[float]]:
        with Caller(server, "http", outputs) as caller:
            return caller.step("two", 9, {"X": np.array(values, np.float32)}, **flags)

    assert ask([1, 2], "COUNT", start=True) == {"COUNT": [1]}
    assert ask([3, 4, 5], "COUNT") == {"COUNT": [2]}
    assert ask([6], "Y") == {"Y": [3, 4, 5]}
    assert ask([7], "COUNT", "Y", end=True) == {"COUNT": [4], "Y": [6]}


def test_a_state_that_is_no_output_cannot_be_requested(server: ServerProcess) -> None:
    with Caller(server, "grpc", ["NEW_N"]) as caller:
        refusal = caller.refusal("two", 10, {"X": np.ones(1, np.float32)}, start=True)
    assert "unexpected inference output 'NEW_N' for model 'two'" in refusal


def test_a_request_that_fails_leaves_the_state_as_it_was(server: ServerProcess) -> None:
    with Caller(server, "grpc") as caller:
        assert caller.step("table", 1, {"X": [[1]]}, start=True) == {"Y": [[10]]}
        assert caller.step("table", 2, {"X": [[2]]}, start=True) == {"Y": [[100]]}
        assert "indices element out of data bounds" in caller.refusal("table", 1, {"X": [[7]]})
        assert caller.step("table", 1, {"X": [[0]]}) == {"Y": [[11]]}
        assert caller.step("table", 2, {"X": [[0]]}) == {"Y": [[101]]}


def test_a_sequence_that_was_silent_too_long_begins_with_its_initial_state(server: ServerProcess) -> None:
    begins = np.frombuffer(DATATYPES["INT32"][1], np.int32)[np.newaxis].tolist()
    with Caller(server, "http") as first, Caller(server, "http") as second, ThreadPoolExecutor(1) as pool:
        assert first.step("hasty", 1, {"X": [[1, 2]]}, start=True) == {"Y": begins}
        # There is one slot: the second sequence has it once the first is silent for too long.
        waiting = pool.submit(second.step, "hasty", 2, {"X": [[3, 4]]}, start=True, end=True)
        assert waiting.result() == {"Y": begins}
        assert NO_START in first.refusal("hasty", 1, {"X": [[5, 6]]})
        assert first.step("hasty", 1, {"X": [[5, 6]]}, start=True) == {"Y": begins}


@pytest.mark.parametrize("model", BROKEN)
def test_an_initial_state_that_cannot_be_fails_the_load(server: ServerProcess, model: str) -> None:
    with HttpEndpoint(server) as endpoint:
        entry = endpoint.index(model)
    assert entry["state"] == "UNAVAILABLE"
    assert BROKEN[model][1] in entry["reason"]
