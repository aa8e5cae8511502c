"""The plain clients against a real server, over both wires: what they ask, what comes back, what trouble does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, Retry
from alipes.errors import DeadlineExceeded, InvalidArgument, NotFound, NotReady, TransportError
from alipes.types import ModelState
from support.models import add_model, counts_up, times
from support.ports import unused_address
from support.python_models import add_python_model
from support.server import ServerProcess
from support.switch import Switch
from support.waiting import TIMEOUT_S

Serve = Callable[..., ServerProcess]

WAITS = """
class TritonPythonModel:
    def execute(self, requests):
        await_note("go")
        return [answer(Y=given(request)) for request in requests]
"""

COUNTS = """
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "zero" } } ]
}
max_batch_size: 1
"""

FORKED = """
import os
import sys

import numpy as np
from alipes.client import Client

client = Client(sys.argv[1])
rows = np.ones((1, 2), np.float32)
assert client.infer("double", rows)[0, 0] == 2
pid = os.fork()
if pid == 0:
    code = 1
    try:
        code = 0 if client.infer("double", rows)[0, 0] == 2 else 2
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert client.infer("double", rows)[0, 0] == 2
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    both = "version_policy { all { } }"
    add_model(repository, "double", times(columns="columns"), versions=(1, 3), config=both)
    add_model(repository, "count", counts_up(), config=COUNTS)
    add_python_model(repository, "words", signature="X: BYTES[-1] -> Y: BYTES[-1]")
    add_python_model(
        repository,
        "pair",
        "class TritonPythonModel:\n    def execute(self, requests):\n"
        "        return [answer(P=given(r, 'A') + 1, Q=given(r, 'B') * 2) for r in requests]\n",
        signature="A: INT32[-1], B: FP64[-1] -> P: INT32[-1], Q: FP64[-1]",
    )
    return serve_module(repository, "--model-control-mode=explicit", "--load-model=*", "--allow-client-shm=true")


@pytest.fixture(params=["grpc", "http"])
def address(request: pytest.FixtureRequest, server: ServerProcess) -> str:
    return f"{request.param}://{server.grpc if request.param == 'grpc' else server.http}"


@pytest.fixture
def client(address: str) -> Client:
    return Client(address)


class Awaiting:
    """An asynchronous client on a loop of its own: a test calls it as it calls `Client`."""

    def __init__(self, address: str, runner: asyncio.Runner) -> None:
        self._client, self._runner = AsyncClient(address), runner

    def infer(self, *arguments: Any, **options: Any) -> Any:
        return self._runner.run(self._answer(arguments, options))

    async def _answer(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return await self._client.infer(*arguments, **options)


@pytest.fixture(params=["calls", "awaits"])
def either(request: pytest.FixtureRequest, address: str) -> Iterator[Client | Awaiting]:
    with asyncio.Runner() as runner:
        yield Client(address) if request.param == "calls" else Awaiting(address, runner)


def rows(value: float = 1.0, columns: int = 2) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.full((1, columns), value, np.float32)


def test_an_array_goes_in_and_an_array_comes_out(client: Client) -> None:
    assert client.infer("double", rows(3)).tolist() == [[6, 6]]
    assert client.infer("double", {"X": rows(4)})["Y"].tolist() == [[8, 8]]


def test_several_inputs_and_outputs_go_by_name(client: Client) -> None:
    inputs = {"A": np.array([1, 2], np.int32), "B": [0.5]}
    outputs = client.infer("pair", inputs)
    assert (outputs["P"].tolist(), outputs["Q"].tolist()) == ([2, 3], [1.0])
    assert client.infer("pair", inputs, outputs=["Q"]).keys() == {"Q"}


def test_calls_that_come_again_are_checked_and_answered_as_the_first(either: Client | Awaiting) -> None:
    every_other = np.arange(8, dtype=np.float32).reshape(2, 4)[:, ::2]
    pair = {"B": np.array([0.5]), "A": np.array([1], np.int32)}
    for _ in range(3):
        assert either.infer("double", rows(3)).tolist() == [[6, 6]]
        assert {name: array.tolist() for name, array in either.infer("double", {"X": rows(4)}).items()} == {
            "Y": [[8, 8]]
        }
        assert either.infer("double", [[1, 2]]).tolist() == [[2, 4]]
        assert either.infer("double", every_other).tolist() == [[0, 4], [8, 12]]
        assert either.infer("double", every_other.astype(">f4")).tolist() == [[0, 4], [8, 12]]
        outputs = either.infer("pair", pair)
        assert (outputs["P"].tolist(), outputs["Q"].tolist()) == ([2], [1.0])
        assert not outputs["P"].flags.writeable
        for wrong, text in (
            (rows()[0], r"takes the shape \[-1,-1\], the array has \[2\]"),
            ({}, "also takes the input 'X'"),
            ({"X": rows(), "Z": rows()}, "no input 'Z'"),
            ({"X": np.ones((1, 2))}, "takes FP32, the array has float64"),
        ):
            with pytest.raises(InvalidArgument, match=text):
                either.infer("double", wrong)


def test_a_wrong_type_is_named_when_a_call_comes_again_too(either: Client | Awaiting) -> None:
    for _ in range(3):
        assert either.infer("double", rows(3)).tolist() == [[6, 6]]
        for call, text in (
            (lambda: either.infer("double", rows(), timeout_s="1"), "timeout_s: expected seconds as a number, got '1'"),
            (lambda: either.infer("double", object()), "input 'X' of model 'double' takes FP32: .* not 'object'"),
            (lambda: either.infer("double", {"X": "one"}), "input 'X' of model 'double' takes FP32: .*'one'"),
            (lambda: either.infer(["double"], rows()), "model: expected the model's name as text, got"),
        ):
            with pytest.raises(InvalidArgument, match=text):
                call()
        assert either.infer("double", rows(3), timeout=60).tolist() == [[6, 6]]


def test_a_call_that_comes_again_has_its_time_and_its_further_attempts(
    repository: Path, tmp_path: Path, serve: Serve
) -> None:
    add_python_model(repository, "waits", WAITS)
    add_model(repository, "double")
    first = serve(repository, environment={"NOTES": str(tmp_path)})
    value = np.ones(1, np.int32)
    with Switch(first.grpc) as grpc, Switch(first.http) as http, asyncio.Runner() as runner:
        addresses = [f"grpc://{grpc.address}", f"http://{http.address}"]
        clients = [*map(Client, addresses), *(Awaiting(address, runner) for address in addresses)]
        (tmp_path / "go").touch()
        for client in clients:
            assert client.infer("waits", value).tolist() == [1]
            assert client.infer("double", rows())[0, 0] == 2
        (tmp_path / "go").unlink()
        for client in clients:
            with pytest.raises(DeadlineExceeded, match=r"within 0|Deadline Exceeded") as raised:
                client.infer("waits", value, timeout_s=0.3)
            assert raised.value.model == "waits"
        (tmp_path / "go").touch()
        first.kill()
        second = serve(repository, environment={"NOTES": str(tmp_path)})
        grpc.lead(second.grpc)
        http.lead(second.http)
        for client in clients:
            assert client.infer("double", rows())[0, 0] == 2


def test_strings_go_in_as_text_and_come_out_as_bytes(client: Client) -> None:
    assert client.infer("words", ["one", "zwölf", ""]).tolist() == [b"one", "zwölf".encode(), b""]


@pytest.mark.parametrize("columns", [0, 1, 5_000, 70_000, 4_000_000])
def test_tensors_of_any_size_arrive_whole_and_aligned(client: Client, columns: int) -> None:
    ramp = np.arange(columns, dtype=np.float32)[None]
    doubled = client.infer("double", ramp)
    np.testing.assert_array_equal(doubled, ramp * 2)
    assert doubled.flags.aligned
    assert not doubled.flags.writeable


def test_an_answer_tells_version_and_id(client: Client) -> None:
    answer = client.ask("double", rows(), version="1", request_id="a-7")
    assert (answer.version, answer.request_id, answer["Y"].tolist()) == ("1", "a-7", [[2, 2]])
    assert client.ask("double", rows()).version == "3"


def test_a_sequence_keeps_its_state(client: Client) -> None:
    one = np.ones((1, 1), np.int32)
    seen = [
        int(
            client.infer("count", {"X": one}, sequence_id=2**63 + 5, sequence_start=step == 0, sequence_end=step == 2)[
                "Y"
            ][0, 0]
        )
        for step in range(3)
    ]
    assert seen == [1, 2, 3]


def test_what_does_not_fit_is_refused_before_it_is_sent(client: Client, server: ServerProcess) -> None:
    client.infer("double", rows())
    before = client.statistics("double", "3")[0]["inference_stats"]["fail"]["count"]
    with pytest.raises(InvalidArgument, match="takes FP32, the array has float64"):
        client.infer("double", np.ones((1, 2)))
    with pytest.raises(InvalidArgument, match="no output 'Z': its outputs are 'Y'"):
        client.infer("double", rows(), outputs=["Z"])
    with pytest.raises(InvalidArgument, match="also takes the input 'B'"):
        client.infer("pair", {"A": np.array([1], np.int32)})
    assert int(client.statistics("double", "3")[0]["inference_stats"]["fail"]["count"]) == int(before)


def test_what_the_server_refuses_is_typed_and_says_whose_it_is(client: Client) -> None:
    with pytest.raises(NotFound, match="nobody") as raised:
        client.infer("nobody", rows(), request_id="r1")
    assert (raised.value.model, raised.value.request_id) == ("nobody", "r1")


def test_control_calls_answer_alike_over_both_wires(client: Client) -> None:
    assert client.is_live()
    assert client.is_ready()
    assert client.is_model_ready("double", "1")
    assert not client.is_model_ready("nobody")
    assert client.server_metadata()["name"]
    metadata = client.metadata("double")
    assert (metadata["versions"], metadata["inputs"][0]["datatype"]) == (["1", "3"], "FP32")
    assert [int(size) for size in metadata["inputs"][0]["shape"]] == [-1, -1]
    assert client.config("double")["input"][0]["data_type"] == "TYPE_FP32"
    assert {line["name"] for line in client.statistics()} == {"double", "count", "words", "pair"}
    states = {(entry.name, entry.version): entry.state for entry in client.models()}
    assert states["double", "3"] is ModelState.READY


def test_a_model_loaded_with_other_files_takes_its_new_inputs(client: Client, address: str) -> None:
    name = f"late-{address[:4]}"
    config = {"backend": "onnxruntime"}
    for factor, columns in ((2.0, 2), (5.0, 3)):
        content = times(factor, columns).SerializeToString()
        client.load(name, config=config, files={"1/model.onnx": content})
        assert client.infer(name, rows(1, columns)).tolist() == [[factor] * columns]
    other = Client(address)
    assert other.infer(name, rows(1, 3)).shape == (1, 3)
    client.load(name, config=config, files={"1/model.onnx": times(2.0, 2).SerializeToString()})
    assert other.infer(name, rows(1, 2)).tolist() == [[2, 2]]  # it looks again before it refuses
    client.unload(name)
    assert not client.is_model_ready(name)
    with pytest.raises((NotFound, NotReady, InvalidArgument)):
        Client(address, retry=Retry(times=0)).infer(name, rows(1, 2))


def test_arrays_in_shared_memory_are_read_and_written_there(client: Client) -> None:
    with client.share(1 << 20) as region:
        buffer, wanted = region.empty((1, 1000)), region.empty((1, 1000))
        buffer[:] = 4
        outputs = client.infer("double", {"X": buffer}, outputs={"Y": wanted})
        assert np.all(wanted == 8)
        assert np.shares_memory(outputs["Y"], wanted)
        assert client.infer("double", buffer)[0, 0] == 8  # in by memory, out by wire
        with pytest.raises(InvalidArgument, match=r"SharedMemory\.empty"):
            client.infer("double", {"X": buffer}, outputs={"Y": np.empty((1, 1000), np.float32)})
        assert not (Path("/dev/shm") / region.name).exists(), "the server maps it: its name is needed no longer"
    assert client.infer("double", rows())[0, 0] == 2


def test_many_threads_share_a_client(client: Client) -> None:
    wrong: list[object] = []

    def caller(number: int) -> None:
        for step in range(50):
            value = float(number * 100 + step)
            if client.infer("double", rows(value))[0, 0] != 2 * value:
                wrong.append((number, step))

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_forked_process_goes_on_with_connections_of_its_own(address: str) -> None:
    command = [sys.executable, "-c", FORKED, address]
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode == 0, run.stderr


def test_coroutines_ask_many_things_at_a_time(address: str) -> None:
    async def ask() -> list[float]:
        async with AsyncClient(address) as client:
            assert await client.is_ready()
            answers = await asyncio.gather(*(client.infer("double", rows(value)) for value in range(200)))
            large = await client.infer("double", rows(1, 500_000))
            assert large.shape == (1, 500_000)
            with pytest.raises(NotFound):
                await client.infer("nobody", rows())
            return [float(answer[0, 0]) for answer in answers]

    for _ in range(2):  # each with an event loop of its own
        assert asyncio.run(ask()) == [2.0 * value for value in range(200)]


def test_late_and_cancelled_calls_are_withdrawn(repository: Path, tmp_path: Path, serve: Serve) -> None:
    add_python_model(repository, "waits", WAITS)
    add_model(repository, "double")
    server = serve(repository, environment={"NOTES": str(tmp_path)})
    value = np.ones(1, np.int32)
    for address in (f"grpc://{server.grpc}", f"http://{server.http}"):
        client = Client(address)
        client.infer("double", rows())
        # Over gRPC the server knows the deadline too, and the error is of the side that sees it first.
        with pytest.raises(DeadlineExceeded, match=r"within 0|Deadline Exceeded"):
            client.infer("waits", value, timeout_s=0.3)
        assert client.infer("double", rows())[0, 0] == 2

    async def cancel() -> None:
        async with AsyncClient(f"grpc://{server.grpc}") as client:
            question = asyncio.create_task(client.infer("waits", value))
            await asyncio.sleep(0)
            question.cancel()
            with pytest.raises(asyncio.CancelledError):
                await question
            assert (await client.infer("double", rows()))[0, 0] == 2

    asyncio.run(cancel())
    (tmp_path / "go").touch()


def test_a_client_goes_on_with_a_restarted_server(repository: Path, serve: Serve) -> None:
    add_model(repository, "double")
    first = serve(repository)
    with Switch(first.grpc) as grpc, Switch(first.http) as http:
        clients = [Client(f"grpc://{grpc.address}"), Client(f"http://{http.address}")]
        for client in clients:
            assert client.infer("double", rows())[0, 0] == 2
        first.kill()
        for switch, client in zip((grpc, http), clients, strict=True):
            switch.lead(None)
            assert not client.is_live()
            with pytest.raises(TransportError):
                client.infer("double", rows())
        second = serve(repository)
        grpc.lead(second.grpc)
        http.lead(second.http)
        for client in clients:
            assert client.infer("double", rows())[0, 0] == 2


def test_an_unused_address_is_an_unreached_transport_error() -> None:
    address = unused_address()
    for wire in ("grpc", "http"):
        client = Client(f"{wire}://{address}", retry=Retry(times=0))
        assert not client.is_live()
        with pytest.raises(TransportError, match=address) as raised:
            client.infer("double", rows())
        assert not raised.value.reached


def test_importing_the_clients_imports_nothing_heavy() -> None:
    code = "import sys, alipes.client\nassert {'numpy', 'asyncio', 'google.protobuf', 'grpc'}.isdisjoint(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
