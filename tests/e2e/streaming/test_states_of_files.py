"""States that the server keeps for ONNX models are taken and put as those of its own streaming models are."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from alipes import streaming
from alipes.errors import InvalidArgument, NotFound, NotReady
from onnx import TensorProto, helper
from support.models import add_model, counts_up, remembers_all
from support.sequences import Refused, Samples, SequenceStream, add_chain, add_streaming
from support.server import ServerProcess

NUMBER = """backend: "onnxruntime"
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 2 } ]
"""
SUM = (
    'state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]'
    ' initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]'
)
LIST = """backend: "onnxruntime"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "ALL" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
ALL = (
    'state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_FP32 dims: [ -1 ]'
    ' initial_state { name: "empty" data_type: TYPE_FP32 dims: [ 0 ] zero_data: true } } ]'
)
STRATEGIES = {"direct": "direct { }", "oldest": "oldest { max_candidate_sequences: 4 }"}


def sequences(more: str, max_batch_size: int) -> str:
    return f"max_batch_size: {max_batch_size} sequence_batching {{ max_sequence_idle_microseconds: 600000000 {more} }}"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("models")
    for name, strategy in STRATEGIES.items():
        add_model(folder, name, counts_up(), config=NUMBER + sequences(f"{strategy} {SUM}", 4))
    add_model(folder, "grows", remembers_all(), config=LIST + sequences(ALL, 0))
    add_model(folder, "one", counts_up(), config=NUMBER.replace("2 }", "1 }") + sequences(f"direct {{ }} {SUM}", 1))
    sizes = {"stride_size": 2, "snapshot_size": 4, "channels": "w:1"}
    add_streaming(folder, "windows", "snapshotter", **sizes)
    state = ALL.replace("-1", "1, 1, 4").replace("dims: [ 0 ]", "dims: [ 1, 1, 4 ]").replace("empty", "zeros")
    add_model(
        folder,
        "sums",
        sums_windows(),
        config='backend: "onnxruntime" '
        'input [ { name: "X" data_type: TYPE_FP32 dims: [ 1, 1, 4 ] } ] '
        'output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1, 1, 4 ] } ] instance_group [ { kind: KIND_CPU } ] '
        + sequences(state, 0),
    )
    add_chain(folder, "chain", [("windows", "snapshot_update", "w"), ("sums", "X", "Y")], [1, 1, 2], [1, 1, 4])
    return folder


def sums_windows() -> onnx.ModelProto:
    """``Y = NEW = OLD + X``, all ``[1, 1, 4]``."""

    def value(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 4])

    nodes = [helper.make_node("Add", ["X", "OLD"], ["NEW"]), helper.make_node("Identity", ["NEW"], ["Y"])]
    graph = helper.make_graph(nodes, "sums", [value("X"), value("OLD")], [value("Y"), value("NEW")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


@pytest.fixture
def stream(server: ServerProcess) -> Iterator[SequenceStream]:
    with SequenceStream(server) as opened:
        yield opened


def count(stream: SequenceStream, model: str, sequence: int | str, number: int, **flags: bool) -> int:
    """The sum after one more number."""
    stream.send(model, "X", np.array([[number]], np.int32), sequence, **flags)
    answer: int = stream.receive().flat[0].item()
    return answer


def forget(server: ServerProcess, model: str, sequence: int) -> int:
    url = f"http://{server.http}/v2/models/{model}/sequences/{sequence}/state"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("model", STRATEGIES)
def test_a_sequence_goes_on_elsewhere_from_its_copied_state(
    server: ServerProcess, other: ServerProcess, stream: SequenceStream, model: str
) -> None:
    for sequence in (1, 2, 3):
        count(stream, model, sequence, 10 * sequence, start=True)
        count(stream, model, sequence, 1)
    with SequenceStream(other) as elsewhere:
        for sequence in (1, 2, 3):
            states = streaming.take_states(server.http, model, sequence)
            streaming.put_states(other.http, model, f"moved {sequence}", states)
            assert count(elsewhere, model, f"moved {sequence}", 5) == 10 * sequence + 6
    assert [count(stream, model, sequence, 2, end=True) for sequence in (1, 2, 3)] == [13, 23, 33]


@pytest.mark.parametrize("model", STRATEGIES)
def test_a_state_that_is_put_replaces_that_of_a_live_sequence(
    server: ServerProcess, stream: SequenceStream, model: str
) -> None:
    count(stream, model, 11, 100, start=True)
    count(stream, model, 12, 1, start=True)
    streaming.put_states(server.http, model, 12, streaming.take_states(server.http, model, 11))
    assert count(stream, model, 12, 5) == 105
    assert count(stream, model, 11, 5, end=True) == 105
    assert forget(server, model, 12) == 200
    assert forget(server, model, 12) == 404
    with pytest.raises(Refused, match="must specify the START flag"):
        count(stream, model, 12, 5)


def test_a_state_is_that_after_the_requests_that_were_sent_before(
    server: ServerProcess, stream: SequenceStream
) -> None:
    count(stream, "oldest", 21, 0, start=True)
    for _ in range(500):
        stream.send("oldest", "X", np.array([[1]], np.int32), 21)
    seen = [
        int.from_bytes(streaming.take_states(server.http, "oldest", 21)["oldest"][-4:], "little") for _ in range(20)
    ]
    list(stream.receive_all(500))
    last = int.from_bytes(streaming.take_states(server.http, "oldest", 21)["oldest"][-4:], "little")
    assert (seen == sorted(seen), seen[-1] <= last, last) == (True, True, 500)
    assert count(stream, "oldest", 21, 1, end=True) == 501


def test_a_state_that_has_grown_moves_with_its_size(server: ServerProcess, other: ServerProcess) -> None:
    with SequenceStream(server) as here, SequenceStream(other) as there:
        for number in range(3):
            here.send("grows", "X", np.full(2, number, np.float32), 31, start=number == 0)
            here.receive()
        states = streaming.take_states(server.http, "grows", 31)
        assert states["grows"][:8] == b"ALIPSTA1"
        streaming.put_states(other.http, "grows", 31, states)
        there.send("grows", "X", np.full(1, 9, np.float32), 31, end=True)
        assert there.receive().tolist() == [0, 0, 1, 1, 2, 2, 9]


def test_states_of_an_ensemble_move_atomically(server: ServerProcess, other: ServerProcess) -> None:
    def update(number: int) -> Samples:
        return np.full((1, 1, 2), number, np.float32)

    with SequenceStream(server) as here, SequenceStream(other) as there:
        for number in (1, 2, 3):
            here.send("chain", "IN", update(number), 41, start=number == 1)
            here.receive()
        states = streaming.take_states(server.http, "chain", 41)
        assert set(states) == {"windows", "sums"}
        with pytest.raises(InvalidArgument, match="the states end in their midst"):
            streaming.put_states(other.http, "chain", 42, states | {"sums": states["sums"][:-1]})
        for model in states:
            with pytest.raises(NotFound, match="no live sequence 42"):
                streaming.take_states(other.http, model, 42)
        streaming.put_states(other.http, "chain", 42, states)
        for stream, sequence in ((here, 41), (there, 42)):
            stream.send("chain", "IN", update(4), sequence, end=True)
        assert here.receive().tobytes() == there.receive().tobytes()


def test_a_state_that_finds_no_slot_is_refused(server: ServerProcess, stream: SequenceStream) -> None:
    count(stream, "one", 51, 7, start=True)
    states = streaming.take_states(server.http, "one", 51)
    with pytest.raises(NotReady, match="model 'one' has no slot for sequence 52: end another"):
        streaming.put_states(server.http, "one", 52, states)
    assert count(stream, "one", 51, 1, end=True) == 8
    streaming.put_states(server.http, "one", 52, states)
    assert count(stream, "one", 52, 1, end=True) == 8


def test_what_is_no_state_of_the_model_changes_nothing(server: ServerProcess, stream: SequenceStream) -> None:
    count(stream, "direct", 61, 3, start=True)
    state = streaming.take_states(server.http, "direct", 61)["direct"]
    for wrong, message in (
        (b"", "0 bytes that do not begin with ALIPSTA1"),
        (state[:-1], "the states end in their midst"),
        (state + b"0", "1 bytes follow the last state"),
        (state.replace(b"INT32", b"INT16"), "state 'OLD' of INT16, expected 'OLD' of INT32"),
        (state.replace(b"OLD", b"NEW"), "there is a state 'NEW' of INT32"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            streaming.put_states(server.http, "direct", 61, {"direct": wrong})
    with pytest.raises(NotFound, match="model 'direct' has no live sequence 'nobody'"):
        streaming.take_states(server.http, "direct", "nobody")
    assert count(stream, "direct", 61, 1, end=True) == 4
