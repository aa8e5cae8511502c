"""`InferenceClient` against a server of ours: what it finds, sends and gives back."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import InferenceClient
from alipes.errors import DeadlineExceeded, InferError, InvalidArgument, NotReady, TransportError
from support.models import add_model, counts_up, times
from support.sequences import Samples, add_chain, add_streaming, halves, means, windows
from support.server import ServerProcess
from support.switch import Switch
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]

CHANNELS, STRIDE, LENGTH, UPDATES = 2, 8, 32, 3

PARTS = """
platform: "ensemble"
input { name: "STREAM" data_type: TYPE_FP32 dims: [ 1, 3, 8 ] }
input { name: "GAIN" data_type: TYPE_FP32 dims: [ -1, 2 ] }
output { name: "A" data_type: TYPE_FP32 dims: [ 1, 2, 32 ] }
output { name: "B" data_type: TYPE_FP32 dims: [ 1, 1, 32 ] }
output { name: "C" data_type: TYPE_FP32 dims: [ 1, 2, 32 ] }
output { name: "D" data_type: TYPE_FP32 dims: [ -1, 2 ] }
ensemble_scheduling { step [
  { model_name: "windows_parts" model_version: -1 input_map { key: "snapshot_update" value: "STREAM" }
    output_map { key: "strain" value: "s" } output_map { key: "witness" value: "w" } },
  { model_name: "net" model_version: -1 input_map { key: "X" value: "s" } output_map { key: "Y" value: "A" } },
  { model_name: "other" model_version: -1 input_map { key: "X" value: "s" } output_map { key: "Y" value: "C" } },
  { model_name: "thin" model_version: -1 input_map { key: "X" value: "w" } output_map { key: "Y" value: "B" } },
  { model_name: "twice" model_version: -1 input_map { key: "X" value: "GAIN" }
    output_map { key: "Y" value: "D" } }
] }
"""

WAITS = """
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(3600 if pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()[0] else 0)
        return [pb_utils.InferenceResponse([pb_utils.get_input_tensor_by_name(r, "X").__class__(
            "Y", pb_utils.get_input_tensor_by_name(r, "X").as_numpy())]) for r in requests]
"""


COUNTS = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0])):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([number], np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def write(repository: Path) -> Path:
    snapshot = {"stride_size": STRIDE, "snapshot_size": LENGTH}
    mean = {"update_size": STRIDE, "num_updates": UPDATES, "kernel_size": LENGTH, "channels": CHANNELS}
    for name, batch in (("one", 1), ("four", 4)):
        add_streaming(repository, f"windows_{name}", "snapshotter", **snapshot, channels="w:2", batch_size=batch)
        add_streaming(repository, f"mean_{name}", "averager", **mean, batch_size=batch)
    add_streaming(repository, "windows_parts", "snapshotter", **snapshot, channels="strain:2,witness:1")
    for name, channels in (("net", 2), ("other", 2), ("thin", 1)):
        add_model(repository, name, halves(channels, LENGTH))
    add_model(repository, "twice", times())
    for name, size, dims in (("chain", "one", [1, 2, STRIDE]), ("chain_four", "four", [1, 2, 4 * STRIDE])):
        steps = [(f"windows_{size}", "snapshot_update", "w"), ("net", "X", "Y")]
        add_chain(repository, name, [*steps, (f"mean_{size}", "update", "output_stream")], dims, dims)
    add_chain(
        repository, "mean_only", [("net", "X", "Y"), ("mean_one", "update", "output_stream")], [1, 2, 32], [1, 2, 8]
    )
    (repository / "parts" / "1").mkdir(parents=True)
    (repository / "parts" / "config.pbtxt").write_text(PARTS)
    (repository / "waits" / "1").mkdir(parents=True)
    (repository / "waits" / "1" / "model.py").write_text(WAITS)
    (repository / "waits" / "config.pbtxt").write_text(
        'input { name: "X" data_type: TYPE_BOOL dims: [ 1 ] } output { name: "Y" data_type: TYPE_BOOL dims: [ 1 ] }'
    )
    (repository / "counts" / "1").mkdir(parents=True)
    (repository / "counts" / "1" / "model.py").write_text(COUNTS)
    (repository / "counts" / "config.pbtxt").write_text(
        'input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } '
        "model_transaction_policy { decoupled: true }"
    )
    return repository


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    return serve_module(write(tmp_path_factory.mktemp("models")))


def noise(seed: int, strides: int, channels: int = CHANNELS) -> Samples:
    return np.random.default_rng(seed).standard_normal((channels, strides * STRIDE), np.float32)


def expected(samples: Samples) -> bytes:
    return means(windows(samples, STRIDE, LENGTH) / np.float32(2), STRIDE, UPDATES).tobytes()


def stream(client: InferenceClient, samples: Samples, sequence_id: int | str = 1001, batch: int = 1) -> int:
    updates = np.split(samples, samples.shape[1] // (STRIDE * batch), axis=1)
    for number, update in enumerate(updates):
        client.infer(update, number, sequence_id, number == 0, number == len(updates) - 1)
    return len(updates)


@pytest.mark.parametrize(("model", "batch"), [("chain", 1), ("chain_four", 4)])
def test_a_stream_of_updates_is_answered_in_order_with_its_ids(server: ServerProcess, model: str, batch: int) -> None:
    samples = noise(1, 40)
    with InferenceClient(server.grpc, model) as client:
        count = stream(client, samples, batch=batch)
    answers = client.get(until_empty=True)
    assert [(request_id, sequence_id) for _, request_id, sequence_id in answers] == [(n, 1001) for n in range(count)]
    assert np.concatenate([y[0] for y, _, _ in answers], axis=1).tobytes() == expected(samples)


def test_the_streams_and_inputs_of_an_ensemble_are_found_by_themselves(server: ServerProcess) -> None:
    client = InferenceClient(server.grpc, "parts", batch_size=3)
    assert client.inputs["GAIN"].shape == (3, 2)
    (state,) = client.states
    assert [part.keys for part in state.parts] == [("net/X", "other/X"), ("thin/X",)]
    assert (client.num_states, client.model_version) == (2, 1)
    assert client.metadata["versions"] == client.metadata.versions == ["1"]
    assert client.config["name"] == client.config.name == "parts"


def test_a_version_that_is_not_served_is_named_beside_those_that_are(server: ServerProcess) -> None:
    with pytest.raises(NotReady, match=r'Model "net" is available but not version 7: the server at .* has 1$'):
        InferenceClient(server.grpc, "net", 7)
    with pytest.raises(NotReady, match=r'Model "mean_oen" is not at .*: the server has \'mean_one\', '):
        InferenceClient(server.grpc, "mean_oen")


def test_scripts_read_the_model_as_with_tritonclient(server: ServerProcess) -> None:
    with InferenceClient(server.grpc, "parts") as client:
        (gain,) = client.inputs
        assert (gain.name(), gain.datatype(), gain.shape()) == ("GAIN", "FP32", [1, 2])
        tensor, shapes = client.states[0]
        assert (tensor.name(), tensor.shape()) == ("STREAM", [1, 3, STRIDE])
        assert shapes == {"net/X": (1, 2, STRIDE), "other/X": (1, 2, STRIDE), "thin/X": (1, 1, STRIDE)}
        assert [one.name for one in client.config.input] == ["STREAM", "GAIN"]
        assert client.config.ensemble_scheduling.step[0].model_name == "windows_parts"
        assert [list(one.shape) for one in client.metadata.inputs] == [[1, 3, STRIDE], [-1, 2]]
        calls = client.client
        assert calls.is_server_live() and calls.is_server_ready() and calls.is_model_ready("parts", "1")
        assert calls.get_model_config("net").config.input[0].name == "X"
        assert calls.get_model_metadata("net", as_json=True)["inputs"][0]["name"] == "X"
        assert calls.get_server_metadata().name == "triton"
        assert {model.name for model in calls.get_model_repository_index().models} >= {"parts", "net"}
        assert calls.get_inference_statistics("net").model_stats[0].name == "net"


def test_several_streams_and_a_plain_input_go_together(server: ServerProcess) -> None:
    strain, witness = noise(2, 4), noise(3, 4, 1)
    with InferenceClient(server.grpc, "parts") as client:
        for number, (a, b) in enumerate(zip(np.split(strain, 4, axis=1), np.split(witness, 4, axis=1), strict=True)):
            x = {"net/X": a, "thin/X": b, "GAIN": np.full((1, 2), number, np.float32)}
            client.infer(x, number, 7, number == 0, number == 3)
        answers = [client.get(timeout_s=TIMEOUT_S)[0] for _ in range(4)]
    whole = windows(strain, STRIDE, LENGTH) / np.float32(2)
    assert np.concatenate([y["A"] for y in answers]).tobytes() == whole.tobytes()
    assert np.concatenate([y["C"] for y in answers]).tobytes() == whole.tobytes()
    assert np.concatenate([y["B"] for y in answers]).tobytes() == (windows(witness, STRIDE, LENGTH) / 2).tobytes()
    assert [y["D"].tolist() for y in answers] == [[[2 * n, 2 * n]] for n in range(4)]


def test_a_stateful_model_is_streamed_to_without_an_ensemble(server: ServerProcess) -> None:
    samples = noise(4, 6)
    with InferenceClient(server.grpc, "windows_one") as client:
        stream(client, samples, "h1")
        answers = list(client)
    assert np.concatenate([y for y, _, _ in answers]).tobytes() == windows(samples, STRIDE, LENGTH).tobytes()
    assert {sequence_id for _, _, sequence_id in answers} == {"h1"}


def test_an_ensemble_with_only_a_streaming_output_uses_sequences(server: ServerProcess) -> None:
    kernels = noise(5, 20).reshape(5, 1, 2, 32)
    with InferenceClient(server.grpc, "mean_only") as client:
        for number, kernel in enumerate(kernels):
            client.infer(kernel, number, 9, number == 0, number == 4)
    got = np.concatenate([y[0] for y, _, _ in client.get(until_empty=True)], axis=1)
    assert got.tobytes() == means(kernels[:, 0] / np.float32(2), STRIDE, UPDATES).tobytes()


def test_the_last_update_of_a_stream_may_be_short(server: ServerProcess) -> None:
    samples = noise(6, 11)
    with InferenceClient(server.grpc, "chain_four") as client:
        for number, start in enumerate((0, 4, 8)):
            update = samples[:, start * STRIDE : (start + 4) * STRIDE]
            client.infer(update, number, 3, number == 0, number == 2)
    got = np.concatenate([y[0] for y, _, _ in client.get(until_empty=True)], axis=1)
    assert got.tobytes() == expected(samples)


def test_requests_without_an_id_get_one(server: ServerProcess) -> None:
    with InferenceClient(server.grpc, "twice") as client:
        for _ in range(3):
            client.infer(np.ones((1, 2), np.float32))
    assert [(request_id, sequence_id) for _, request_id, sequence_id in client.get(until_empty=True)] == [
        (0, None),
        (1, None),
        (2, None),
    ]


def test_requests_under_one_id_are_distinguished(server: ServerProcess) -> None:
    with InferenceClient(server.grpc, "twice") as client:
        for number in range(50):
            client.infer(np.full((1, 2), number, np.float32), request_id=5)
    answers = client.get(until_empty=True)
    assert [(y[0, 0], request_id) for y, request_id, _ in answers] == [(2 * number, 5) for number in range(50)]


def test_what_a_callback_returns_is_queued_and_what_it_raises_is_raised(server: ServerProcess) -> None:
    def callback(y: Any, request_id: int, sequence_id: object) -> Any:
        if request_id == 1:
            raise KeyError("mine")
        return None if request_id == 0 else (float(y[0, 0]), threading.current_thread() is threading.main_thread())

    with InferenceClient(server.grpc, "twice", callback=callback) as client:
        for number in range(3):
            client.infer(np.full((1, 2), number, np.float32), request_id=number)
    with pytest.raises(KeyError, match="mine"):
        client.get()
    assert client.get() == (4.0, False)
    assert client.get() is None
    assert client.get(until_empty=True) == []


def test_a_callback_may_send_while_the_window_is_full(server: ServerProcess) -> None:
    def follow(y: Any, request_id: int, sequence_id: object) -> Any:
        if request_id < 20:
            client.infer(y, request_id + 1)
            return None
        return y

    with InferenceClient(server.grpc, "twice", callback=follow, max_in_flight=1) as client:
        client.infer(np.ones((1, 2), np.float32), 0)
    assert client.get()[0, 0] == 2.0**21


def test_futures_have_their_own_answers_and_the_queue_none(server: ServerProcess) -> None:
    with InferenceClient(server.grpc, "twice", max_in_flight=4) as client:
        futures = [client.submit(np.full((1, 2), number, np.float32), number) for number in range(20)]
        done = {future.request_id: future.result()[0, 0] for future in client.as_completed(futures, TIMEOUT_S)}  # type: ignore[attr-defined]
        assert client.get() is None
    assert done == {number: 2 * number for number in range(20)}


def test_a_server_error_is_raised_in_order_and_names_its_request(server: ServerProcess) -> None:
    with InferenceClient(server.grpc, "chain") as client:
        client.infer(noise(1, 1), 5, 77)
        future = client.submit(noise(1, 1), 6, 77)
        with pytest.raises(RuntimeError, match="must specify the START flag") as caught:
            client.get(timeout_s=TIMEOUT_S)
        assert isinstance(future.exception(TIMEOUT_S), InvalidArgument)
    assert isinstance(caught.value, InferError)
    assert (caught.value.request_id, caught.value.sequence_id) == ("5", 77)


def test_sequence_ids_are_required_exactly_for_stateful_models(
    server: ServerProcess,
) -> None:
    with InferenceClient(server.grpc, "chain") as client, pytest.raises(ValueError, match="give the sequence_id"):
        client.infer(noise(1, 1))
    with InferenceClient(server.grpc, "twice") as client, pytest.raises(ValueError, match="takes no sequence_id"):
        client.infer(np.ones((1, 2), np.float32), sequence_id=1)


def test_several_sequences_are_fed_by_several_threads(server: ServerProcess) -> None:
    data = {1001 + number: noise(number, 30) for number in range(4)}
    with InferenceClient(server.grpc, "chain") as client:
        threads = [threading.Thread(target=stream, args=(client, data[one], one)) for one in data]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    answers = client.get(until_empty=True)
    for one, samples in data.items():
        own = [y[0] for y, _, sequence_id in answers if sequence_id == one]
        assert np.concatenate(own, axis=1).tobytes() == expected(samples)


def test_answers_are_iterated_in_an_event_loop(server: ServerProcess) -> None:
    async def run() -> list[float]:
        with InferenceClient(server.grpc, "twice") as client:
            first = await client.ask(np.ones((1, 2), np.float32))
            for number in range(10):
                client.infer(np.full((1, 2), number, np.float32))
            return [float(first[0, 0]), *[float(y[0, 0]) async for y, _, _ in client]]

    assert asyncio.run(run()) == [2.0, *(2.0 * number for number in range(10))]


def test_latencies_are_counted_by_sequence(server: ServerProcess) -> None:
    with InferenceClient(server.grpc, "chain", profile=True) as client:
        stream(client, noise(1, 5), 4)
        client.infer(noise(1, 1), 0, 5)
        client.drain(TIMEOUT_S)
    assert client.clock is not None
    assert {one: len(latencies) for one, latencies in client.clock.latencies.items()} == {4: 5}


def test_a_request_that_takes_too_long_fails(server: ServerProcess) -> None:
    client = InferenceClient(server.grpc, "waits")
    client.infer(np.array([True]), 7, timeout_s=0.05)
    with pytest.raises(DeadlineExceeded, match=r"no answer within 0.05 s") as caught:
        client.get(timeout_s=TIMEOUT_S)
    assert caught.value.request_id == "7"
    client.cancel()
    assert client.in_flight == 0


def test_leaving_with_an_exception_waits_for_nothing(server: ServerProcess) -> None:
    client = InferenceClient(server.grpc, "waits")
    with pytest.raises(KeyError), client:
        future = client.submit(np.array([True]))
        raise KeyError
    assert future.cancelled()
    assert client.get() is None


def test_a_client_works_again_after_it_was_closed(server: ServerProcess) -> None:
    client = InferenceClient(server.grpc, "twice")
    for _ in range(2):
        with client:
            client.infer(np.ones((1, 2), np.float32))
        assert client.get() is not None


def test_a_model_that_is_not_loaded_is_loaded(serve: Serve, tmp_path: Path) -> None:
    write(tmp_path / "models")
    server = serve(tmp_path / "models", "--model-control-mode=explicit")
    with InferenceClient(server.grpc, "chain") as client:
        count = stream(client, noise(1, 3))
    assert len(client.get(until_empty=True)) == count
    with pytest.raises(NotReady, match=r"available but not version 3: .* has 1"):
        InferenceClient(server.grpc, "chain", 3)
    with pytest.raises(RuntimeError, match=r"is not at .*: the server has"):
        InferenceClient(server.grpc, "nowhere")
    with InferenceClient(server.grpc, "twice") as client:
        client.client.unload_model("chain", unload_dependents=True)
        assert not client.client.is_model_ready("chain")
        client.client.load_model("chain")
        assert client.client.is_model_ready("chain")


def test_a_missing_model_is_an_error(server: ServerProcess) -> None:
    with pytest.raises(RuntimeError, match="nowhere"):
        InferenceClient(server.grpc, "nowhere")


def test_a_server_that_is_not_there_is_a_runtime_error() -> None:
    with pytest.raises(TransportError, match=r"Couldn't connect to server at 127\.0\.0\.1:1") as caught:
        InferenceClient("127.0.0.1:1", "m", connect_timeout_s=5)
    assert isinstance(caught.value, RuntimeError)


def test_a_child_process_uses_a_connection_of_its_own(server: ServerProcess) -> None:
    samples = noise(12, 6)
    with InferenceClient(server.grpc, "chain") as client:
        client.infer(noise(13, 1), 0, 4001, sequence_start=True)
        child = os.fork()
        if child == 0:  # nothing of the test may run on here
            try:
                stream(client, samples, 4002)
                mine = [client.get(timeout_s=TIMEOUT_S) for _ in range(6)]
                right = np.concatenate([y[0] for y, _, _ in mine], axis=1).tobytes() == expected(samples)
                os._exit(0 if right else 1)
            except BaseException:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert client.get(timeout_s=TIMEOUT_S)[1:] == (0, 4001)


def test_a_checkpoint_of_an_unknown_state_needs_a_number(serve: Serve, tmp_path: Path) -> None:
    sequence = 'sequence_batching { state { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ] } }'
    tensors = (
        'input { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] }'
    )
    add_model(tmp_path, "counts", counts_up(), config=f"max_batch_size: 1 {tensors} {sequence}")
    server = serve(tmp_path)
    with pytest.raises(ValueError, match="checkpoint=<updates>"):
        InferenceClient(server.grpc, "counts", checkpoint=True)
    InferenceClient(server.grpc, "counts", checkpoint=3)


@pytest.mark.parametrize("sequences", [1, 3])
@pytest.mark.parametrize(("model", "batch"), [("chain", 1), ("chain_four", 4)])
def test_parallel_sequences_answer_like_one(server: ServerProcess, model: str, batch: int, sequences: int) -> None:
    samples = noise(8, 61)  # the last update of four is short
    with InferenceClient(server.grpc, model, max_in_flight=16) as client:
        answers = list(client.stream(samples, 5001, sequences=sequences, ahead=8))
    assert np.concatenate([y[0] for y in answers], axis=1).tobytes() == expected(samples)
    assert len(answers) == -(-61 // batch)


def test_a_first_request_of_zeros_leaves_no_trace_in_the_streams_behind_it(server: ServerProcess) -> None:
    samples = noise(9, 10)
    with InferenceClient(server.grpc, "chain") as client:
        client.warm_up(TIMEOUT_S)
        stream(client, samples)
    answers = client.get(until_empty=True)
    assert np.concatenate([y[0] for y, _, _ in answers], axis=1).tobytes() == expected(samples)


def test_an_array_may_be_changed_though_its_request_is_repeated(server: ServerProcess) -> None:
    x = np.zeros((1, 2), np.float32)
    with Switch(server.grpc) as switch:
        with InferenceClient(switch.address, "twice", retries=8, reconnect_s=TIMEOUT_S) as client:
            for number in range(60):
                if number == 30:
                    switch.cut()
                x[:] = number
                client.infer(x, number)
        answers = client.get(until_empty=True)
    assert [(y[0, 0], request_id) for y, request_id, _ in answers] == [(2 * number, number) for number in range(60)]


def test_tritonclient_options_warn_and_others_raise(server: ServerProcess) -> None:
    with pytest.warns(UserWarning, match="verbose: options of tritonclient, without effect here"):
        InferenceClient(server.grpc, "twice", verbose=True, channel_args=None)
    with pytest.raises(TypeError, match="takes no argument verbos"):
        InferenceClient(server.grpc, "twice", verbos=True)


def test_a_callback_may_not_wait_for_all_answers(server: ServerProcess) -> None:
    with InferenceClient(server.grpc, "twice", callback=lambda *_: client.close()) as client:
        client.infer(np.ones((1, 2), np.float32))
    with pytest.raises(RuntimeError, match="which a callback cannot do"):
        client.get()


def test_every_response_of_a_decoupled_model_comes_in_order(server: ServerProcess) -> None:
    with InferenceClient(server.grpc, "counts") as client:
        for count in (3, 0, 2):
            client.infer(np.array([count], np.int32), count)
        several = client.submit(np.array([4], np.int32)).result(TIMEOUT_S)
    assert [(int(y[0]), request_id) for y, request_id, _ in client.get(until_empty=True)] == [
        (0, 3),
        (1, 3),
        (2, 3),
        (0, 2),
        (1, 2),
    ]
    assert [int(y[0]) for y in several] == [0, 1, 2, 3]
