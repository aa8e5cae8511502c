"""Snapshotters and averagers over the real endpoints: the states of sequences, and which of them may go on."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.sequences import Refused, SequenceStream, add_streaming, means, windows
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

STRIDE, LENGTH = 4, 10


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    single = {"stride_size": STRIDE, "snapshot_size": LENGTH, "channels": "strain:2"}
    add_streaming(repository, "windows", "snapshotter", **single)
    add_streaming(repository, "batched", "snapshotter", **single, batch_size=3)
    idle = "sequence_batching { direct {} max_sequence_idle_microseconds: 1 }"
    add_streaming(repository, "hasty", "snapshotter", **single, more=idle)
    add_streaming(repository, "mean", "averager", update_size=2, num_updates=3, kernel_size=7, channels=2)
    large = {"stride_size": 64, "snapshot_size": 1 << 16, "batch_size": 8, "channels": "strain:1"}
    add_streaming(repository, "long", "snapshotter", **large)
    # As its tensors describe it, with a name for each input of a network.
    (repository / "listed" / "1").mkdir(parents=True)
    (repository / "listed" / "config.pbtxt").write_text("""
        platform: "snapshotter"
        input { name: "news" data_type: TYPE_INT16 dims: [ 1, 3, 4 ] }
        output { name: "b" data_type: TYPE_INT16 dims: [ 2, 2, 5 ] }
        output { name: "a" data_type: TYPE_INT16 dims: [ 2, 5 ] }
        instance_group { kind: KIND_GPU count: 3 }
    """)
    return serve_module(repository, "--streaming-max-sequences=50")


@pytest.fixture
def stream(server: ServerProcess) -> Iterator[SequenceStream]:
    with SequenceStream(server) as stream:
        yield stream


@pytest.fixture
def noise() -> np.random.Generator:
    return np.random.default_rng(5)


def test_windows_are_the_newest_samples_bit_for_bit(stream: SequenceStream, noise: np.random.Generator) -> None:
    samples = noise.standard_normal((2, 9 * STRIDE), np.float32)
    for model, batch in (("windows", 1), ("batched", 3)):
        updates = np.split(samples, 9 // batch, axis=1)
        for number, update in enumerate(updates):
            start, end = number == 0, number == len(updates) - 1
            stream.send(model, "snapshot_update", update[None], 7, start=start, end=end)
        answers = list(stream.receive_all(len(updates)))
        assert all(answer.shape == (batch, 2, LENGTH) for answer in answers)
        assert np.concatenate(answers).tobytes() == windows(samples, STRIDE, LENGTH).tobytes()


def test_means_are_those_of_the_predictions_that_cover_a_sample(
    stream: SequenceStream, noise: np.random.Generator
) -> None:
    kernels = noise.standard_normal((8, 2, 7), np.float32)
    for number, kernel in enumerate(kernels):
        stream.send("mean", "update", kernel[None], 3, start=number == 0, end=number == 7)
    answers = [answer[0] for answer in stream.receive_all(8)]
    assert np.concatenate(answers, axis=1).tobytes() == means(kernels, 2, 3).tobytes()


def test_states_of_interleaved_sequences_stay_apart(stream: SequenceStream, noise: np.random.Generator) -> None:
    samples = noise.standard_normal((40, 2, 5 * STRIDE), np.float32)
    for step in range(5):
        for sequence in range(40):
            update = samples[sequence, :, step * STRIDE : (step + 1) * STRIDE]
            name = sequence + 1 if sequence % 2 else f"n{sequence}"
            stream.send("windows", "snapshot_update", update[None], name, start=step == 0, end=step == 4)
    answers = np.concatenate(list(stream.receive_all(200))).reshape(5, 40, 2, LENGTH)
    for sequence in range(40):
        assert answers[:, sequence].tobytes() == windows(samples[sequence], STRIDE, LENGTH).tobytes()


def test_a_start_begins_anew_and_an_end_forgets(stream: SequenceStream) -> None:
    ones = np.ones((1, 2, STRIDE), np.float32)
    for start in (True, False, True):
        stream.send("windows", "snapshot_update", ones, 9, start=start)
    assert [int(answer.sum()) for answer in stream.receive_all(3)] == [8, 16, 8]
    stream.send("windows", "snapshot_update", ones, 9, end=True)
    assert stream.receive().sum() == 16
    stream.send("windows", "snapshot_update", ones, 9)
    with pytest.raises(Refused, match="must specify the START flag on the first request of the sequence"):
        stream.receive()


@pytest.mark.parametrize(
    ("model", "sequence", "values"),
    [
        ("windows", 0, "inference request to model 'windows' must specify a non-zero or non-empty correlation ID"),
        (
            "mean",
            99,
            "inference request for sequence 99 to model 'mean' must specify the START flag on the first request of the "
            "sequence",
        ),
        (
            "windows",
            "x",
            "inference request for sequence x to model 'windows' must specify the START flag on the first request of "
            "the sequence",
        ),
    ],
)
def test_requests_out_of_place_are_refused_in_tritons_words(
    server: ServerProcess, stream: SequenceStream, model: str, sequence: int | str, values: str
) -> None:
    name, samples = ("update", 7) if model == "mean" else ("snapshot_update", STRIDE)
    stream.send(model, name, np.zeros((1, 2, samples), np.float32), sequence)
    with pytest.raises(Refused) as caught:
        stream.receive()
    assert str(caught.value) == values
    status, body = post(server, model, name, [1, 2, samples], sequence_id=sequence)
    assert (status, body["error"]) == (400, values)


def test_a_silent_sequence_is_forgotten(stream: SequenceStream) -> None:
    ones = np.ones((1, 2, STRIDE), np.float32)
    stream.send("hasty", "snapshot_update", ones, 9, start=True)
    stream.receive()
    stream.send("hasty", "snapshot_update", ones, 9)
    with pytest.raises(Refused, match="must specify the START flag"):
        stream.receive()


def test_more_sequences_than_the_limit_are_refused_until_one_ends(stream: SequenceStream) -> None:
    ones = np.ones((1, 2, STRIDE), np.float32)
    for sequence in range(1, 51):
        stream.send("batched", "snapshot_update", np.ones((1, 2, 3 * STRIDE), np.float32), sequence, start=True)
    list(stream.receive_all(50))
    stream.send("batched", "snapshot_update", np.ones((1, 2, 3 * STRIDE), np.float32), 51, start=True)
    with pytest.raises(
        Refused, match=r"model 'batched' has 50 live sequences and takes no more; .*--streaming-max-seq"
    ):
        stream.receive()
    # Another model has sequences of its own.
    stream.send("windows", "snapshot_update", ones, 51, start=True, end=True)
    stream.receive()
    for sequence in (50, *range(1, 50)):
        stream.send("batched", "snapshot_update", np.ones((1, 2, 3 * STRIDE), np.float32), sequence, end=True)
    list(stream.receive_all(50))
    stream.send("batched", "snapshot_update", np.ones((1, 2, 3 * STRIDE), np.float32), 51, start=True, end=True)
    assert stream.receive().shape == (3, 2, LENGTH)


def test_listed_tensors_say_as_much_as_parameters(server: ServerProcess) -> None:
    news = {"name": "news", "datatype": "INT16", "shape": [1, 3, 4], "data": list(range(1, 13))}
    status, answer = send(server, "listed", {"inputs": [news], "parameters": begin(5)})
    assert (status, answer.get("error")) == (200, None)
    outputs = {one["name"]: (one["shape"], one["data"]) for one in answer["outputs"]}
    assert outputs["a"] == ([2, 5], [0, 0, 0, 9, 10, 0, 9, 10, 11, 12])
    assert outputs["b"][0] == [2, 2, 5]
    only_a = {"inputs": [news], "outputs": [{"name": "a"}], "parameters": {"sequence_id": 5}}
    assert [one["name"] for one in send(server, "listed", only_a)[1]["outputs"]] == ["a"]


def test_an_idle_sequence_frees_its_memory(server: ServerProcess, stream: SequenceStream) -> None:
    for sequence in range(1, 21):
        stream.send("hasty", "snapshot_update", np.ones((1, 2, STRIDE), np.float32), sequence, start=True)
    list(stream.receive_all(20))
    until(lambda: live(server, "hasty") == 0)


def test_updates_that_take_long_keep_their_order_and_other_requests_going(
    server: ServerProcess, stream: SequenceStream, noise: np.random.Generator
) -> None:
    # Each answer has two megabytes, so that helpers write it.
    samples = noise.standard_normal((3, 1, 4 * 8 * 64), np.float32)
    for step in range(4):
        for sequence in range(3):
            update = samples[sequence, :, step * 512 : (step + 1) * 512]
            stream.send("long", "snapshot_update", update[None], sequence + 1, start=step == 0, end=step == 3)
    answers = list(stream.receive_all(12))
    for sequence in range(3):
        found = np.concatenate(answers[sequence::3])
        assert found.tobytes() == windows(samples[sequence], 64, 1 << 16).tobytes()
    until(lambda: live(server, "long") == 0)


def test_each_model_has_its_own_statistics(server: ServerProcess, stream: SequenceStream) -> None:
    stream.send("hasty", "snapshot_update", np.ones((1, 2, STRIDE), np.float32), 77, start=True, end=True)
    stream.receive()
    with urllib.request.urlopen(f"http://{server.http}/v2/models/hasty/stats") as answer:
        statistics = json.load(answer)["model_stats"][0]
    assert (
        statistics["inference_count"]
        == statistics["execution_count"]
        == statistics["inference_stats"]["success"]["count"]
        > 0
    )
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as answer:
        text = answer.read().decode()
    assert f'nv_inference_request_success{{model="hasty",version="1"}} {statistics["execution_count"]}' in text
    assert re.search(r'^alipes_live_sequences\{model="hasty",version="1"\} \d+$', text, re.MULTILINE)


def live(server: ServerProcess, model: str) -> int:
    """Live sequences of a model."""
    with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/explain") as answer:
        return int(json.load(answer)["models"][0]["streaming"]["sequences"])


def begin(sequence: int | str) -> dict[str, object]:
    return {"sequence_id": sequence, "sequence_start": True}


def post(
    server: ServerProcess, model: str, name: str, shape: list[int], **parameters: object
) -> tuple[int, dict[str, object]]:
    tensor = {"name": name, "datatype": "FP32", "shape": shape, "data": [0] * int(np.prod(shape))}
    return send(server, model, {"inputs": [tensor], "parameters": parameters})


def send(server: ServerProcess, model: str, body: dict[str, object]) -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(f"http://{server.http}/v2/models/{model}/infer", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
