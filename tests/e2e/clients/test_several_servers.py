"""Plain clients of several real servers: how calls are spread, and what happens when servers come and go."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, Retry
from alipes.client.plain import failover
from alipes.client.servers import watch
from alipes.errors import AlipesError, InvalidArgument, NotFound, NotReady, TransportError, Unsupported
from support.models import add_model, counts_up, times
from support.ports import unused_address
from support.python_models import DECOUPLED, add_python_model
from support.server import ServerProcess
from support.switch import Switch
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

COUNTS = """
sequence_batching {
  max_sequence_idle_microseconds: 600000000
  state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "zero" } } ]
}
max_batch_size: 8
"""

# Gives one response, then waits until the client is gone.
ONE_AND = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(answer(Y=given(request)))
            while not sender.is_cancelled():
                time.sleep(0.002)
            sender.send(flags=FINAL)
"""

FORKED = """
import os
import sys

import numpy as np
from alipes.client import Client

client = Client(sys.argv[1])
rows = np.ones((1, 2), np.float32)
for _ in range(4):
    assert client.infer("double", rows)[0, 0] == 2
pid = os.fork()
if pid == 0:
    code = 1
    try:
        code = 0 if all(client.infer("double", rows)[0, 0] == 2 for _ in range(4)) else 2
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert client.infer("double", rows)[0, 0] == 2
"""

ROW = np.ones((1, 2), np.float32)
ONE = np.ones((1, 1), np.int32)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> list[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double", times(columns="columns"))
    add_model(repository, "count", counts_up(), config=COUNTS)
    add_python_model(repository, "one-and", ONE_AND, config=DECOUPLED)
    flags = ("--model-control-mode=explicit", "--load-model=*", "--allow-client-shm=true")
    return [serve_module(repository, *flags) for _ in range(2)]


@pytest.fixture
def switches(pair: list[ServerProcess]) -> Iterator[list[Switch]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Switch(server.grpc)) for server in pair]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are taken for gone where they are gone, not where this machine is slow."""
    monkeypatch.setattr(failover, "_INTRODUCTION_S", TIMEOUT_S)
    monkeypatch.setattr(watch, "LOOK_S", TIMEOUT_S)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of somebody who accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def executed(server: ServerProcess, model: str = "double") -> int:
    """The requests that a server has executed."""
    with Client(server.grpc) as client:
        return int(client.statistics(model)[0]["inference_stats"]["success"]["count"])


def doubled(client: Client, count: int = 1) -> None:
    """Asks so many times, and checks each answer."""
    for number in range(count):
        assert client.infer("double", ROW * number).tolist() == [[2 * number, 2 * number]]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("mixed", ["grpc", "http", "unnamed"])
def test_calls_are_spread_and_each_is_executed_once(pair: list[ServerProcess], mixed: str) -> None:
    addresses = {
        "grpc": [f"grpc://{server.grpc}" for server in pair],
        "http": [f"http://{server.http}" for server in pair],
        "unnamed": [pair[0].grpc, pair[1].http],
    }[mixed]
    before = [executed(server) for server in pair]
    with Client(",".join(addresses)) as client:
        doubled(client, 10)
        assert client.is_live()
        assert client.is_ready("double")
        assert not client.is_ready("nobody")
        assert client.metadata("double")["name"] == "double"
        assert {entry.name for entry in client.models()} == {"double", "count", "one-and"}
        with pytest.raises(Unsupported, match="statistics are those of one server, and this client has 2"):
            client.statistics()
        with pytest.raises(NotFound, match="nobody"):
            client.infer("nobody", ROW)
        with pytest.raises(InvalidArgument, match="no input 'Z'"):
            client.infer("double", {"Z": ROW})
    counts = [executed(server) - count for server, count in zip(pair, before, strict=True)]
    assert sum(counts) == 10
    assert min(counts) >= 4


@pytest.mark.usefixtures("patient")
def test_coroutines_are_spread_over_the_servers(pair: list[ServerProcess]) -> None:
    before = [executed(server) for server in pair]

    async def ask() -> None:
        async with AsyncClient([server.grpc for server in pair]) as client:
            answers = await asyncio.gather(*(client.infer("double", ROW * number) for number in range(100)))
            assert [answer[0, 0] for answer in answers] == [2.0 * number for number in range(100)]
            assert await client.is_ready()

    asyncio.run(ask())
    assert [executed(server) - count for server, count in zip(pair, before, strict=True)] == [50, 50]


def test_one_server_is_dead_one_silent_and_one_no_inference_server(
    pair: list[ServerProcess], silent: str, caplog: pytest.LogCaptureFixture
) -> None:
    dead = unused_address()
    before = executed(pair[0])
    with Client([dead, silent, pair[1].metrics, pair[0].grpc], retry=Retry(times=10)) as client:
        doubled(client, 10)
    assert executed(pair[0]) - before == 10
    lost = {record.args[0].place.address: record.getMessage() for record in caplog.records if "is left" in record.msg}
    assert "Connection refused" in lost[dead]
    assert "answer" in lost[silent].partition("answers again")[2]
    assert "is no inference server" in lost[pair[1].metrics]


def test_where_all_servers_are_gone_each_is_named_with_its_reason(pair: list[ServerProcess], silent: str) -> None:
    dead = [unused_address(), unused_address()]
    with Client([*dead, pair[1].metrics], retry=Retry(times=1, first_s=0.01)) as client:
        with pytest.raises(TransportError) as raised:
            client.infer("double", ROW)
        text = str(raised.value)
        assert text.startswith("none of the 3 servers answers: ")
        assert all(f"cannot connect to {address}: Connection refused" in text for address in dead)
        assert f"the server at {pair[1].metrics} is no inference server" in text
        assert not client.is_live()
    with pytest.raises(AlipesError, match="within 0"):
        Client([silent, dead[0]], timeout_s=0.8, retry=Retry(times=0)).infer("double", ROW)


@pytest.mark.parametrize("kind", ["waiting", "awaited"])
def test_a_server_that_is_killed_under_load_costs_no_call(
    pair: list[ServerProcess], tmp_path: Path, serve: Serve, kind: str
) -> None:
    add_model(tmp_path, "double", times(columns="columns"))
    victim = serve(tmp_path)
    addresses = [pair[0].grpc, victim.grpc]
    counts = [0] * 4
    gone = threading.Event()

    def wait(number: int) -> None:
        while not gone.is_set() or counts[number] < enough[number]:
            doubled(client)
            counts[number] += 1

    async def work(number: int) -> None:
        async with AsyncClient(addresses) as awaited:
            while not gone.is_set() or counts[number] < enough[number]:
                assert (await awaited.infer("double", ROW)).tolist() == [[2, 2]]
                counts[number] += 1

    enough = [0] * 4
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            wait(number) if kind == "waiting" else asyncio.run(work(number))
        except BaseException as error:
            failed.append(error)

    with Client(addresses) as client:
        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: failed or executed(victim) > 20)
        victim.kill()
        enough[:] = [count + 20 for count in counts]
        gone.set()
        for thread in threads:
            thread.join()
    assert failed == []


def test_a_server_that_comes_back_is_found_again(pair: list[ServerProcess], switches: list[Switch]) -> None:
    with Client([switch.address for switch in switches]) as client:
        doubled(client, 4)
        switches[1].lead(None)
        doubled(client, 4)
        before = executed(pair[1])
        switches[1].lead(pair[1].grpc)
        until(lambda: doubled(client) or executed(pair[1]) > before)
        switches[0].lead(None)
        doubled(client, 4)


@pytest.mark.usefixtures("patient")
def test_sequences_stay_at_their_server(pair: list[ServerProcess], switches: list[Switch]) -> None:
    def update(number: int, **flags: bool) -> int:
        return int(client.infer("count", {"X": ONE}, sequence_id=number, **flags)["Y"][0, 0])

    before = [executed(server, "count") for server in pair]
    with Client([switch.address for switch in switches]) as client:
        assert [update(number, sequence_start=True) for number in range(1, 5)] == [1, 1, 1, 1]
        assert [update(number) for _ in range(3) for number in range(1, 5)] == [2] * 4 + [3] * 4 + [4] * 4
        assert [executed(server, "count") - count for server, count in zip(pair, before, strict=True)] == [8, 8]
        switches[0].lead(None)
        outcomes: list[Any] = []
        for number in range(1, 5):
            try:
                outcomes.append(update(number))
            except TransportError as error:
                outcomes.append(str(error))
        assert sorted(outcome for outcome in outcomes if outcome == 5) == [5, 5]
        lost = [number for number, outcome in enumerate(outcomes, 1) if outcome != 5]
        for number in lost:
            assert f"sequence {number} is at {switches[0].address}, which does not answer" in outcomes[number - 1]
            assert "sequence_start=True" in outcomes[number - 1]
            assert update(number, sequence_start=True) == 1
        assert [update(number, sequence_end=True) for number in lost] == [2, 2]


@pytest.mark.usefixtures("patient")
def test_a_stream_stays_at_its_server_and_ends_with_it(pair: list[ServerProcess], switches: list[Switch]) -> None:
    value = np.array([7], np.int32)
    with Client([unused_address(), *(switch.address for switch in switches)]) as client:
        first, second = client.stream("one-and", value), client.stream("one-and", value)
        assert [next(first).tolist(), next(second).tolist()] == [[7], [7]]  # one at each server
        for switch in switches:
            switch.lead(None)
        texts = []
        for responses in (first, second):
            with pytest.raises(TransportError, match=r"ended before its last response .* not repeated") as raised:
                next(responses)
            texts.append(str(raised.value))
        assert all(any(f"from {switch.address} ended" in text for text in texts) for switch in switches)
        switches[0].lead(pair[0].grpc)
        until(client.is_live)
        third = client.stream("one-and", value)
        assert next(third).tolist() == [7]
        third.close()


def test_models_are_loaded_and_unloaded_at_every_server(pair: list[ServerProcess]) -> None:
    content = {"1/model.onnx": times(5.0, 2).SerializeToString()}
    with Client([server.grpc for server in pair]) as client:
        client.load("late", config={"backend": "onnxruntime"}, files=content)
        for server in pair:
            assert Client(server.grpc).infer("late", ROW).tolist() == [[5, 5]]
        client.unload("late")
        assert not client.is_model_ready("late")
    dead = unused_address()
    with Client([pair[0].grpc, dead]) as client:
        with pytest.raises(TransportError, match=rf"model 'late' was loaded at 1 of 2 servers: .*{dead}"):
            client.load("late", config={"backend": "onnxruntime"}, files=content)
        assert Client(pair[0].grpc).infer("late", ROW).tolist() == [[5, 5]]
    # A model that one server lacks is asked for elsewhere.
    with Client([server.grpc for server in pair]) as client:
        for _ in range(4):
            assert client.infer("late", ROW).tolist() == [[5, 5]]
    with Client(pair[0].grpc) as client:
        client.unload("late")


def test_shared_memory_is_registered_with_every_server(pair: list[ServerProcess]) -> None:
    dead = unused_address()
    with Client([server.grpc for server in pair]) as client, client.share(1 << 16) as region:
        buffer, wanted = region.empty((1, 100)), region.empty((1, 100))
        for number in range(4):
            buffer[:] = number
            client.infer("double", {"X": buffer}, outputs={"Y": wanted})
            assert np.all(wanted == 2 * number)
            assert client.infer("double", buffer)[0, 0] == 2 * number
    with (
        Client([pair[0].grpc, dead]) as client,
        pytest.raises(TransportError, match="the memory was shared at 1 of 2 servers"),
    ):
        client.share(1 << 16)


def test_a_name_is_looked_up_again_when_servers_are_gone(
    pair: list[ServerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Switch(pair[0].grpc, "127.0.0.2") as first:
        port = int(first.address.rpartition(":")[2])
        known = ["127.0.0.2"]
        name_means(monkeypatch, known, port)
        with Switch(pair[1].grpc, "127.0.0.3", port) as second, Client(f"dns:///servers.test:{port}") as client:
            doubled(client, 4)
            known[:] = ["127.0.0.3"]
            first.lead(None)
            before = executed(pair[1])

            def answered() -> bool:
                try:
                    doubled(client)
                except TransportError:
                    return False
                return executed(pair[1]) > before

            until(answered)
            assert second.address.startswith("127.0.0.3")


def test_a_call_that_all_have_refused_goes_to_who_has_the_name_now(
    pair: list[ServerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(Switch(pair[0].grpc, "127.0.0.2"))
        port = int(first.address.rpartition(":")[2])
        stack.enter_context(Switch(pair[1].grpc, "127.0.0.3", port))
        known = ["127.0.0.2"]
        name_means(monkeypatch, known, port)
        # No thread of the client looks the name up in this time.
        monkeypatch.setattr(watch, "RENEW_S", TIMEOUT_S)
        monkeypatch.setattr(failover, "RENEW_SOON_S", 0.0)
        client = stack.enter_context(Client(f"dns:///servers.test:{port}"))
        doubled(client, 2)

        async def renamed() -> float:
            known[:] = ["127.0.0.2"]
            async with AsyncClient(f"dns:///servers.test:{port}") as other:
                with pytest.raises((NotReady, NotFound)):
                    await other.infer("double", ROW)
                known[:] = ["127.0.0.3"]
                return float((await other.infer("double", ROW))[0, 0])

        one = stack.enter_context(Client(pair[0].grpc))
        one.unload("double")
        try:
            with pytest.raises((NotReady, NotFound)):
                client.infer("double", ROW)
            known[:] = ["127.0.0.3"]
            before = executed(pair[1])
            doubled(client)
            assert executed(pair[1]) == before + 1
            assert asyncio.run(renamed()) == 2
        finally:
            one.load("double")


def name_means(monkeypatch: pytest.MonkeyPatch, known: list[str], port: int) -> None:
    """Has the name `servers.test` stand for addresses that are known when it is looked up."""
    real = socket.getaddrinfo

    def look_up(host: Any, *arguments: Any, **options: Any) -> list[Any]:
        if host != "servers.test":
            return real(host, *arguments, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port)) for number in known]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def test_a_server_that_refuses_leaves_its_requests_to_others(pair: list[ServerProcess]) -> None:
    with Client(pair[0].grpc) as one:
        one.unload("double")
        try:
            with Client([server.grpc for server in pair]) as client:
                doubled(client, 6)
            with Client([server.grpc for server in pair[:1]]) as client, pytest.raises((NotReady, NotFound)):
                client.infer("double", ROW)
        finally:
            one.load("double")


def test_a_forked_process_goes_on_with_all_servers(pair: list[ServerProcess]) -> None:
    command = [sys.executable, "-c", FORKED, ",".join(server.grpc for server in pair)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode == 0, run.stderr
