"""Two detectors' strain, an hour long, through windows, a network and means: no gap, no duplicate, all in order."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from alipes.client import InferenceClient
from alipes.errors import AlipesError
from support.detectors import BATCH, RATE_HZ, STRIDE, Strain, expected, strain, write_repository
from support.processes import metric
from support.server import ServerProcess

pytestmark = pytest.mark.proof

SECONDS = 3600
# An hour of it is 59 megabytes on either way.
MOST_GROWTH_BYTES = 24 << 20

Serve = Callable[..., ServerProcess]


class Checked:
    """Looks at each answer: it is the next one, and holds the samples that it should."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.seconds = 0

    def __call__(self, y: Strain, request_id: int, sequence_id: int) -> int:
        assert sequence_id == 1001
        assert request_id == self.seconds, "answers come in the order of their updates, each once"
        assert y.shape == (1, 2, self.samples)
        np.testing.assert_array_equal(y[0], expected(request_id * self.samples, self.samples))
        self.seconds += 1
        return request_id


def send(client: InferenceClient, numbers: range, samples: int, last: int) -> None:
    for number in numbers:
        client.infer(
            strain(number * samples, samples),
            request_id=number,
            sequence_id=1001,
            sequence_start=number == 0,
            sequence_end=number == last,
        )


def resident(server: ServerProcess) -> int:
    return int(psutil.Process(server.process.pid).memory_info().rss)


@pytest.mark.timeout(900)
def test_an_hour_comes_back_whole_in_order_and_leaves_nothing_behind(repository: Path, serve: Serve) -> None:
    write_repository(repository)
    server = serve(repository)
    checked = Checked(RATE_HZ)
    # What is under way takes memory too, so there is as much of it early as late.
    with InferenceClient(server.grpc, "detectors", callback=checked, max_in_flight=32) as client:
        send(client, range(300), RATE_HZ, SECONDS - 1)
        client.drain()
        assert metric(server, "alipes_live_sequences") == 2, "one state for the windows, one for the means"
        before = resident(server)
        send(client, range(300, SECONDS), RATE_HZ, SECONDS - 1)
    # Leaving the block waits for all answers; one that was not as it should be is raised here.
    assert client.get(until_empty=True) == list(range(SECONDS))
    assert checked.seconds == SECONDS
    assert metric(server, "alipes_live_sequences") == 0
    assert resident(server) - before < MOST_GROWTH_BYTES


@pytest.mark.timeout(300)
def test_single_strides_come_back_as_batches_of_them_do(repository: Path, serve: Serve) -> None:
    write_repository(repository, batch=1)
    server = serve(repository)
    checked = Checked(STRIDE)
    with InferenceClient(server.grpc, "detectors", callback=checked) as client:
        send(client, range(60 * BATCH), STRIDE, 60 * BATCH - 1)
    assert client.get(until_empty=True) == list(range(60 * BATCH))


@pytest.fixture
def address() -> str:
    """An address that no other test of this machine has, so that its port stays free between the two servers."""
    return f"127.83.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"


def killed_in_the_middle(
    repository: Path, serve: Serve, client: InferenceClient, first: ServerProcess, *, drained: bool = False
) -> None:
    """Ten minutes of strain; the server is killed while updates are under way, or after, and started again."""
    send(client, range(300), RATE_HZ, 599)
    client.drain()
    send(client, range(300, 310), RATE_HZ, 599)
    if drained:
        client.drain()
    first.kill()
    address, _, port = first.grpc.rpartition(":")
    serve(repository, f"--grpc-address={address}", f"--grpc-port={port}")
    send(client, range(310, 600), RATE_HZ, 599)


@pytest.mark.timeout(300)
def test_a_stream_continues_after_its_server_was_killed(repository: Path, serve: Serve, address: str) -> None:
    write_repository(repository)
    first = serve(repository, f"--grpc-address={address}")
    checked = Checked(RATE_HZ)
    with InferenceClient(first.grpc, "detectors", callback=checked, checkpoint=True, reconnect_s=120) as client:
        killed_in_the_middle(repository, serve, client, first)
    assert client.get(until_empty=True) == list(range(600))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("drained", [False, True], ids=["with updates under way", "with all updates answered"])
def test_without_a_checkpoint_the_client_says_what_was_lost(
    repository: Path, serve: Serve, address: str, drained: bool
) -> None:
    write_repository(repository)
    first = serve(repository, f"--grpc-address={address}")
    with InferenceClient(first.grpc, "detectors", callback=Checked(RATE_HZ), reconnect_s=120) as client:
        with pytest.raises(AlipesError) as lost:
            killed_in_the_middle(repository, serve, client, first, drained=drained)
            while True:
                client.get(timeout_s=60.0)
        assert re.search(r"sequence 1001", str(lost.value))
        assert re.search(r"checkpoint=True", str(lost.value)), str(lost.value)
        client.cancel()
