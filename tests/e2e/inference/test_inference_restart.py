"""A server that is killed in the midst of streams: with a checkpoint the answers are the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes.client import InferenceClient
from alipes.errors import TransportError
from support.models import add_model
from support.processes import metric
from support.sequences import LONG_IDLE, Samples, add_chain, add_streaming, halves, means, windows
from support.server import ServerProcess
from support.switch import Switch
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

CHANNELS, STRIDE, LENGTH, UPDATES = 2, 8, 32, 3
COUNT = 60


@pytest.fixture
def models(tmp_path: Path) -> Path:
    repository = tmp_path / "models"
    for name, batch in (("one", 1), ("four", 4)):
        dims = [1, CHANNELS, STRIDE * batch]
        snapshot = {"stride_size": STRIDE, "snapshot_size": LENGTH, "channels": f"w:{CHANNELS}", "batch_size": batch}
        mean = {"update_size": STRIDE, "num_updates": UPDATES, "kernel_size": LENGTH, "channels": CHANNELS}
        add_streaming(repository, f"windows_{name}", "snapshotter", **snapshot)
        add_streaming(repository, f"mean_{name}", "averager", **mean, batch_size=batch)
        steps = [(f"windows_{name}", "snapshot_update", "w"), ("net", "X", "Y")]
        add_chain(repository, f"chain_{name}", [*steps, (f"mean_{name}", "update", "output_stream")], dims, dims)
    add_model(repository, "net", halves(CHANNELS, LENGTH))
    return repository


def noise(seed: int, updates: int, batch: int) -> list[Samples]:
    samples = np.random.default_rng(seed).standard_normal((CHANNELS, updates * STRIDE * batch), np.float32)
    return np.split(samples, updates, axis=1)


def expected(updates: list[Samples]) -> bytes:
    return means(windows(np.concatenate(updates, axis=1), STRIDE, LENGTH) / np.float32(2), STRIDE, UPDATES).tobytes()


@pytest.mark.parametrize(("size", "batch"), [("one", 1), ("four", 4)])
def test_streams_survive_a_server_restart_bit_for_bit(serve: Serve, models: Path, size: str, batch: int) -> None:
    data = {11: noise(1, COUNT, batch), 12: noise(2, COUNT, batch)}
    first = serve(models)
    with Switch(first.grpc) as switch:
        with InferenceClient(switch.address, f"chain_{size}", checkpoint=True, reconnect_s=TIMEOUT_S) as client:
            for number in range(COUNT):
                if number == COUNT // 2:
                    first.kill()
                    switch.lead(serve(models).grpc)
                for sequence, updates in data.items():
                    client.infer(updates[number], number, sequence, number == 0, number == COUNT - 1)
                if number == 3:  # some of the first are answered before the server dies
                    client.drain(TIMEOUT_S)
        answers = client.get(until_empty=True)
    for sequence, updates in data.items():
        own = [(request_id, y[0]) for y, request_id, one in answers if one == sequence]
        assert [request_id for request_id, _ in own] == list(range(COUNT))
        assert np.concatenate([y for _, y in own], axis=1).tobytes() == expected(updates)


def test_streams_survive_broken_connections_bit_for_bit(serve: Serve, models: Path) -> None:
    updates = noise(3, COUNT, 1)
    with Switch(serve(models).grpc) as switch:
        with InferenceClient(switch.address, "chain_one", checkpoint=True, reconnect_s=TIMEOUT_S) as client:
            for number, update in enumerate(updates):
                if number % 20 == 10:
                    switch.cut()
                client.infer(update, number, 5, number == 0, number == COUNT - 1)
        answers = client.get(until_empty=True)
    assert [request_id for _, request_id, _ in answers] == list(range(COUNT))
    assert np.concatenate([y[0] for y, _, _ in answers], axis=1).tobytes() == expected(updates)


def test_a_lost_sequence_without_checkpoint_needs_a_new_start(serve: Serve, models: Path) -> None:
    updates = noise(4, 8, 1)
    first = serve(models)
    with Switch(first.grpc) as switch, InferenceClient(switch.address, "chain_one") as client:
        for number in range(4):
            client.infer(updates[number], number, 5, number == 0)
        client.drain(TIMEOUT_S)
        first.kill()
        switch.lead(serve(models).grpc)
        # The update may be refused by the new server, which knows nothing of the sequence, or be lost on its way.
        with pytest.raises(
            (TransportError, RuntimeError),
            match=r"(START flag.* after 4 answered|of sequence 5, 4 updates were answered)",
        ) as lost:
            client.submit(updates[4], 4, 5).result(TIMEOUT_S)
        assert "create the client with checkpoint=True" in str(lost.value)
        client.get(until_empty=True)
        for number, update in enumerate(updates):
            client.infer(update, number, 5, number == 0)
        got = [client.get(timeout_s=TIMEOUT_S)[0][0] for _ in updates]
    assert np.concatenate(got, axis=1).tobytes() == expected(updates)


def test_a_stream_that_was_idle_for_too_long_goes_on_bit_for_bit(serve: Serve, models: Path) -> None:
    idle = "sequence_batching { max_sequence_idle_microseconds: 250000 }"
    for name in ("windows_one", "mean_one"):
        config = models / name / "config.pbtxt"
        config.write_text(config.read_text().replace(LONG_IDLE, idle))
    server, updates = serve(models), noise(5, 30, 1)
    with InferenceClient(server.grpc, "chain_one", checkpoint=True) as client:
        for number, update in enumerate(updates):
            if number in {3, 20}:
                client.drain(TIMEOUT_S)
                until(lambda: metric(server, "alipes_live_sequences") == 0)
            client.infer(update, number, 5, number == 0, number == 29)
    answers = client.get(until_empty=True)
    assert [request_id for _, request_id, _ in answers] == list(range(30))
    assert np.concatenate([y[0] for y, _, _ in answers], axis=1).tobytes() == expected(updates)


def test_threaded_streams_survive_broken_connections(serve: Serve, models: Path) -> None:
    data = {100 + number: noise(number, 80, 1) for number in range(8)}
    answers: dict[int, list[tuple[int, Samples]]] = {sequence: [] for sequence in data}
    breaks = iter(range(50, 640, 70))
    due = [next(breaks)]

    with Switch(serve(models).grpc) as switch:

        def note(y: Samples, request_id: int, sequence_id: int) -> None:
            answers[sequence_id].append((request_id, y[0]))
            if sum(map(len, answers.values())) == due[0]:
                due[0] = next(breaks, 0)
                switch.cut()

        def feed(sequences: list[int]) -> None:
            for number in range(80):
                for sequence in sequences:
                    client.infer(data[sequence][number], number, sequence, number == 0, number == 79)

        with InferenceClient(
            switch.address, "chain_one", callback=note, checkpoint=True, reconnect_s=TIMEOUT_S, max_in_flight=100
        ) as client:
            threads = [threading.Thread(target=feed, args=([*data][start::4],)) for start in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert client.get(until_empty=True) == []
    for sequence, updates in data.items():
        assert [request_id for request_id, _ in answers[sequence]] == list(range(80))
        assert np.concatenate([y for _, y in answers[sequence]], axis=1).tobytes() == expected(updates)
