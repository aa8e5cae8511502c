"""Sequences that move from one server to another in their midst: their states go along, and so does every bit."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import onnx
import pytest
from alipes import streaming
from alipes.errors import InvalidArgument, NotFound, TransportError, Unsupported
from support.ports import unused_address
from support.sequences import Refused, Samples, SequenceStream, add_chain, add_streaming, halves, means, windows
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

CHANNELS, STRIDE, LENGTH, BATCH, UPDATES, REQUESTS = 2, 4, 12, 2, 3, 10
SEQUENCES: tuple[int | str, ...] = (7, 2**62 + 5, "left/right ä", "42")
NAMES = {7: "7", 2**62 + 5: str(2**62 + 5), "left/right ä": "left/right ä", "42": '"42"'}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("models")
    sizes = {"stride_size": STRIDE, "snapshot_size": LENGTH, "batch_size": BATCH, "channels": f"w:{CHANNELS}"}
    add_streaming(folder, "windows", "snapshotter", **sizes)
    add_streaming(folder, "5% of ä", "snapshotter", **sizes)
    sizes = {"update_size": STRIDE, "num_updates": UPDATES, "batch_size": BATCH, "kernel_size": LENGTH}
    add_streaming(folder, "means", "averager", **sizes, channels=CHANNELS, unbiased_start=1)
    (folder / "net" / "1").mkdir(parents=True)
    onnx.save(halves(CHANNELS, LENGTH), folder / "net" / "1" / "model.onnx")
    steps = [("windows", "snapshot_update", "w"), ("net", "X", "Y"), ("means", "update", "output_stream")]
    add_chain(folder, "chain", steps, [1, CHANNELS, STRIDE * BATCH], [1, CHANNELS, STRIDE * BATCH])
    return folder


def ask(
    server: ServerProcess, method: str, model: str, sequence: str, body: bytes | None = None, version: str = ""
) -> tuple[int, bytes]:
    """Status and body of the answer to a request for a state."""
    path = f"{model}{version}/sequences/{quote(sequence, safe='')}/state"
    request = urllib.request.Request(f"http://{server.http}/v2/models/{path}", body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def send(server: ServerProcess, signals: dict[int | str, Samples], steps: range) -> dict[int | str, list[Samples]]:
    """Answers to a part of each sequence."""
    size = STRIDE * BATCH
    with SequenceStream(server) as stream:
        for at in steps:
            for sequence, signal in signals.items():
                update = signal[None, :, at * size : (at + 1) * size]
                stream.send("chain", "IN", update, sequence, start=at == 0, end=at == REQUESTS - 1)
        answers = list(stream.receive_all(len(steps) * len(signals)))
    return {sequence: answers[number :: len(signals)] for number, sequence in enumerate(signals)}


def test_a_moved_stream_gives_the_bits_of_one_that_stays(server: ServerProcess, other: ServerProcess) -> None:
    noise = np.random.default_rng(11)
    shape = (CHANNELS, REQUESTS * STRIDE * BATCH)
    signals = {sequence: noise.standard_normal(shape, np.float32) for sequence in SEQUENCES}
    first = send(server, signals, range(2))
    for sequence in SEQUENCES:
        for model in ("windows", "means"):
            status, state = ask(server, "GET", model, NAMES[sequence])
            assert (status, state[:8]) == (200, b"ALIPSEQ1")
            assert ask(other, "PUT", model, NAMES[sequence], state) == (200, b"")
            assert ask(other, "GET", model, NAMES[sequence], version="/versions/1") == (200, state)
    second = send(other, signals, range(2, REQUESTS))
    for sequence, signal in signals.items():
        found = np.concatenate([answer[0] for answer in first[sequence] + second[sequence]], axis=1)
        kernels = windows(signal, STRIDE, LENGTH) / np.float32(2)
        assert found.tobytes() == means(kernels, STRIDE, UPDATES, unbiased=True).tobytes()
        assert ask(other, "GET", "windows", NAMES[sequence])[0] == 404


def test_a_script_moves_a_stream_of_an_ensemble(server: ServerProcess, other: ServerProcess, tmp_path: Path) -> None:
    signal = np.random.default_rng(2).standard_normal((CHANNELS, REQUESTS * STRIDE * BATCH), np.float32)
    answers = send(server, {5: signal}, range(4))[5]
    states = streaming.take_states(server.http, "chain", 5)
    assert list(states) == ["windows", "means"]
    with pytest.raises(InvalidArgument, match="keeps states in 'means', 'windows', but those given are of 'windows'"):
        streaming.put_states(other.http, "chain", 5, {"windows": states["windows"]})
    streaming.put_states(other.http, "chain", "left", states)
    answers += send(other, {"left": signal}, range(4, REQUESTS))["left"]
    found = np.concatenate([answer[0] for answer in answers], axis=1)
    kernels = windows(signal, STRIDE, LENGTH) / np.float32(2)
    assert found.tobytes() == means(kernels, STRIDE, UPDATES, unbiased=True).tobytes()


def test_a_model_is_found_whatever_its_name(server: ServerProcess) -> None:
    with pytest.raises(NotFound, match="sequence 5"):
        streaming.take_states(server.http, "5% of ä", 5)


def test_a_script_puts_all_states_of_an_ensemble_or_none(server: ServerProcess, other: ServerProcess) -> None:
    signal = np.random.default_rng(4).standard_normal((CHANNELS, REQUESTS * STRIDE * BATCH), np.float32)
    answers = send(server, {70: signal}, range(4))[70]
    send(server, {71: signal}, range(2))
    states = streaming.take_states(server.http, "chain", 70)
    broken = states | {"means": states["means"][:-1]}
    before = streaming.take_states(server.http, "chain", 71)
    for sequence in (71, 72):
        with pytest.raises(InvalidArgument, match="the state has"):
            streaming.put_states(server.http, "chain", sequence, broken)
    assert streaming.take_states(server.http, "chain", 71) == before
    for model in ("windows", "means"):
        assert ask(server, "GET", model, "72")[0] == 404
    streaming.put_states(server.http, "chain", 72, states)
    answers += send(server, {72: signal}, range(4, REQUESTS))[72]
    kernels = windows(signal, STRIDE, LENGTH) / np.float32(2)
    found = np.concatenate([answer[0] for answer in answers], axis=1)
    assert found.tobytes() == means(kernels, STRIDE, UPDATES, unbiased=True).tobytes()


def test_a_sequence_is_forgotten_between_its_requests(server: ServerProcess) -> None:
    update = np.ones((1, CHANNELS, STRIDE * BATCH), np.float32)
    with SequenceStream(server) as stream:
        stream.send("windows", "snapshot_update", update, 73, start=True)
        stream.receive()
        assert ask(server, "DELETE", "windows", "73") == (200, b"")
        assert ask(server, "GET", "windows", "73")[0] == 404
        stream.send("windows", "snapshot_update", update, 73)
        with pytest.raises(Refused, match="must specify the START flag"):
            stream.receive()


def test_what_cannot_be_moved_is_an_error(server: ServerProcess) -> None:
    with pytest.raises(NotFound, match="has no live sequence 31"):
        streaming.take_states(server.http, "chain", 31)
    with pytest.raises(Unsupported, match="model 'net' keeps no states"):
        streaming.take_states(server.http, "net", 31)
    with pytest.raises(NotFound, match="unknown model: 'nowhere'"):
        streaming.take_states(server.http, "nowhere", 31)
    with pytest.raises(TransportError, match="cannot ask the server at"):
        streaming.take_states(unused_address(), "chain", 31)


def test_a_state_is_a_header_and_the_numbers_of_each_channel(server: ServerProcess) -> None:
    signal = np.arange(CHANNELS * STRIDE * BATCH, dtype=np.float32).reshape(1, CHANNELS, -1)
    with SequenceStream(server) as stream:
        stream.send("windows", "snapshot_update", signal, 99, start=True)
        window = stream.receive()[-1]
    _, state = ask(server, "GET", "windows", "99")
    assert state[8:28] == b"snapshotter\0FP32\0\0\0\0"
    assert np.frombuffer(state[28:64], "<u4").tolist() == [CHANNELS, LENGTH, 0, 0, 0, 0, 0, 0, 0]
    assert state[64:] == window.tobytes()


def test_a_state_copied_meanwhile_is_one_between_two_requests(server: ServerProcess) -> None:
    count, size = 200, STRIDE * BATCH
    signal = np.random.default_rng(3).standard_normal((CHANNELS, count * size), np.float32)
    known = windows(signal, STRIDE, LENGTH)[BATCH - 1 :: BATCH]
    allowed = {window.tobytes() for window in known}
    with SequenceStream(server) as stream:
        stream.send("windows", "snapshot_update", signal[None, :, :size], 55, start=True)
        stream.receive()
        for at in range(1, count):
            stream.send("windows", "snapshot_update", signal[None, :, at * size : (at + 1) * size], 55)
        for _ in range(20):
            status, state = ask(server, "GET", "windows", "55")
            assert status == 503 or state[64:] in allowed
            if status == 503:
                assert b"sequence 55 of model 'windows' has requests under way" in state
        list(stream.receive_all(count - 1))
        status, state = ask(server, "GET", "windows", "55")
    assert (status, state[64:]) == (200, known[-1].tobytes())


def test_what_is_no_state_of_the_model_is_refused(server: ServerProcess) -> None:
    with SequenceStream(server) as stream:
        stream.send("windows", "snapshot_update", np.ones((1, CHANNELS, STRIDE * BATCH), np.float32), 3, start=True)
        stream.receive()
    _, state = ask(server, "GET", "windows", "3")
    for body, text in (
        (b"", "0 bytes that do not begin with ALIPSEQ1 are no state of a sequence"),
        (state[:-1], f"the state has {len(state) - 1} bytes, expected {len(state)}"),
        (state + b"0", f"the state has {len(state) + 1} bytes, expected {len(state)}"),
    ):
        assert ask(server, "PUT", "windows", "3", body) == (400, f'{{"error":"{text}"}}'.encode())
    status, text = ask(server, "PUT", "means", "3", state)
    assert (status, b"one of snapshotter FP32 [2, 12], expected averager FP32 [2, 16]" in text) == (400, True)
    assert ask(server, "GET", "windows", "3") == (200, state)


@pytest.mark.parametrize(
    ("method", "model", "sequence", "status", "text"),
    [
        ("GET", "windows", "12345", 404, "model 'windows' has no live sequence 12345"),
        ("GET", "windows", "me", 404, "model 'windows' has no live sequence 'me'"),
        ("GET", "windows", "0", 400, "a sequence has a non-zero or non-empty correlation ID"),
        ("GET", "nowhere", "1", 404, "Request for unknown model: 'nowhere' is not found"),
        (
            "GET",
            "net",
            "1",
            501,
            "model 'net' has no states to be taken or put: only snapshotters and averagers",
        ),
        ("PUT", "chain", "1", 501, "model 'chain' has no states to be taken or put: only"),
        ("DELETE", "windows", "1", 404, "model 'windows' has no live sequence 1"),
        ("DELETE", "net", "1", 501, "model 'net' has no states"),
        ("POST", "windows", "1", 405, ""),
    ],
)
def test_missing_models_and_sequences_are_reported(
    server: ServerProcess, method: str, model: str, sequence: str, status: int, text: str
) -> None:
    found, answer = ask(server, method, model, sequence, b"" if method == "PUT" else None)
    assert (found, text in answer.decode()) == (status, True)


def test_states_take_slots_like_sequences(serve: Serve, repository: Path) -> None:
    server = serve(repository, "--streaming-max-sequences=1", "--load-model=windows", "--model-control-mode=explicit")
    with SequenceStream(server) as stream:
        update = np.ones((1, CHANNELS, STRIDE * BATCH), np.float32)
        stream.send("windows", "snapshot_update", update, 1, start=True)
        stream.receive()
        _, state = ask(server, "GET", "windows", "1")
        status, text = ask(server, "PUT", "windows", "2", state)
        assert (status, b"has 1 live sequences and takes no more" in text) == (503, True)
        stream.send("windows", "snapshot_update", update, 1, end=True)
        stream.receive()
        assert ask(server, "PUT", "windows", "2", state) == (200, b"")
        stream.send("windows", "snapshot_update", 2 * update, 2)
        assert stream.receive()[0, 0].tolist() == [1.0] * 8 + [2.0] * 4
        stream.send("windows", "snapshot_update", update, 1)
        with pytest.raises(Refused, match="must specify the START flag"):
            stream.receive()
