"""Functions and classes of a running script, served from it: `Server(louder)`, `serve(louder)` and `louder.serve()`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.request import Request, urlopen

import alipes
import numpy as np
import pytest
from alipes import AsyncClient, Client, ConfigError, InvalidArgument, ServeError, Server, Unsupported
from support.command import alipes as command
from support.models import add_model
from support.processes import is_gone
from support.waiting import TIMEOUT_S, until

HERE = os.getpid()
LOUDNESS = 2.0  # what the function closes over lives here, and nowhere else


@alipes.model
def louder(sound: list[float], factor: float | None = None) -> list[float]:
    """Makes a sound louder."""
    return [value * (factor or LOUDNESS) for value in sound]


@alipes.model
def describe(rows: list[dict[str, float]], name: str = "rows") -> dict[str, Any]:
    return {"name": name, "sum": sum(row["x"] for row in rows)}


@alipes.model
def count(n: int) -> Iterator[int]:
    yield from range(n)


@alipes.model
async def count_slowly(n: int) -> AsyncIterator[int]:
    for number in range(n):
        await asyncio.sleep(0)
        yield number


@alipes.model
async def sixfold(x: int) -> int:
    return await alipes.call_async("threefold", x=x) * 2


def threefold(x: int) -> int:
    return 3 * x


@alipes.model(max_batch_size=8, max_delay=0.01)
def total(x: Annotated[np.ndarray, np.float32, (None, 3)]) -> tuple[list[int], list[str]]:
    return [int(row.sum()) for row in x], ["of three"] * len(x)


def add_one(x: int) -> int:
    return x + 1


@alipes.model(before=add_one)
def tenfold(x: int) -> int:
    return 10 * x


@alipes.model(instances=2)
class Adder:
    def predict(self, x: float) -> float:
        return x + 1 if os.getpid() == HERE else -1.0


FUNCTIONS = [louder, describe, count, count_slowly, sixfold, threefold, total, tenfold, Adder]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(FUNCTIONS, host="127.0.0.1", port=0) as server:
        yield server


@pytest.fixture(scope="module", params=["http", "grpc"])
def client(server: Server, request: pytest.FixtureRequest) -> Iterator[Client]:
    with Client(f"{request.param}://{getattr(server, request.param)}") as client:
        yield client


CALLS: list[tuple[str, dict[str, Any], Any]] = [
    ("louder", {"sound": [1, 2]}, [2.0, 4.0]),
    ("louder", {"sound": [1, 2], "factor": 3}, [3.0, 6.0]),
    ("louder", {"sound": np.array([1.0])}, [2.0]),
    ("describe", {"rows": [{"x": 1}, {"x": 2.5}]}, {"name": "rows", "sum": 3.5}),
    ("describe", {"rows": [], "name": "none"}, {"name": "none", "sum": 0.0}),
    ("threefold", {"x": 4}, 12),
    ("sixfold", {"x": 4}, 24),
    ("tenfold", {"x": 4}, 50),
    ("total", {"x": [1, 2, 3]}, (6, "of three")),
    ("adder", {"x": 1}, 2.0),
]


@pytest.mark.parametrize(("name", "arguments", "value"), CALLS)
def test_a_function_of_a_script_is_called_in_the_words_of_its_signature(
    client: Client, name: str, arguments: dict[str, Any], value: Any
) -> None:
    assert client.call(name, **arguments) == value


def test_arguments_go_by_position_as_in_python(client: Client) -> None:
    assert client.call("louder", [1, 2]) == [2.0, 4.0]
    assert client.call("louder", [1, 2], 3) == client.call("louder", [1, 2], factor=3) == [3.0, 6.0]
    with pytest.raises(InvalidArgument, match=r"^'louder' takes sound, factor: 3 values are more$"):
        client.call("louder", [1], 2, 3)
    with pytest.raises(InvalidArgument, match=r"^'louder' has two values for the argument 'sound'$"):
        client.call("louder", [1], sound=[1])
    with pytest.raises(InvalidArgument, match=r"^arguments by name are passed as keywords: call\('louder', \*\*\{'"):
        client.call("louder", {"sound": [1], "factor": 2})
    with pytest.raises(InvalidArgument, match=r"how long a call takes belongs to the client: Client\(.*timeout=3\)$"):
        client.call("louder", [1], timeout=3)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("louder", {"sund": [1]}, "function 'louder' has no argument 'sund': it has 'sound', 'factor', and 'sound' is"),
        ("louder", {}, "function 'louder' needs the argument 'sound': it takes sound, factor="),
        ("describe", {"rows": [object()]}, "the arguments of function 'describe' cannot be sent as JSON"),
        ("threefold", {"x": 1.5}, "argument 'x' of function 'threefold' takes int: 1.5"),
        ("threefold", {"x": [1, 2]}, "argument 'x' of function 'threefold' takes int: "),
        (
            "total",
            {"x": ["a", "b", "c"]},
            "argument 'x' of function 'total' takes Array: could not convert string to float",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_refused_before_it_is_sent(
    client: Client, name: str, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidArgument) as error:
        client.call(name, **arguments)
    assert str(error.value).startswith(text)


def test_a_generator_is_called_over_grpc_and_its_values_come_one_by_one(server: Server) -> None:
    with Client(server.grpc_url) as client:
        assert list(client.call("count", n=3)) == list(client.call("count_slowly", n=3)) == [0, 1, 2]
    with Client(server.url) as client, pytest.raises(Unsupported, match="needs gRPC"):
        next(client.call("count", n=3))


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_functions_are_called_by_the_asynchronous_client_too(server: Server, wire: str) -> None:
    async def called() -> list[Any]:
        async with AsyncClient(f"{wire}://{getattr(server, wire)}") as client:
            if wire == "grpc":
                assert [number async for number in await client.call("count", n=3)] == [0, 1, 2]
            return await asyncio.gather(*(client.call(name, **arguments) for name, arguments, _ in CALLS))

    assert asyncio.run(called()) == [value for *_, value in CALLS]


def test_a_function_of_a_script_is_an_endpoint_and_described(server: Server) -> None:
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{server.url}/louder", b'{"sound": [1]}', headers), timeout=TIMEOUT_S) as answer:
        assert json.load(answer) == [2.0]
    with urlopen(f"{server.url}/openapi.json", timeout=TIMEOUT_S) as answer:
        paths = json.load(answer)["paths"]
    assert {"/louder", "/describe", "/count", "/adder"} <= paths.keys()
    assert paths["/louder"]["post"]["summary"] == "Makes a sound louder"


@pytest.mark.parametrize("wire", ["http", "grpc"])
def test_anybody_lists_the_functions_of_a_script_and_only_it_unloads_them(server: Server, wire: str) -> None:
    url = ("--url", f"{wire}://{getattr(server, wire)}")
    assert ["louder", "1", "READY"] in command("models", "list", *url).rows
    refused = command("models", "unload", "louder", *url)
    assert refused.code != 0
    assert "is restricted, expecting header" in refused.message
    with urlopen(Request(f"{server.url}/", headers={"Accept": "text/html"})) as page:
        assert "louder" in page.read().decode()


def test_metrics_show_the_processor_time_of_the_script(server: Server) -> None:
    with Client(server.url) as client:
        client.call("louder", sound=[1, 2])
    before = time.process_time()
    with urlopen(f"http://{server.metrics}/metrics") as answer:
        text = answer.read().decode()
    found = re.search(r"^alipes_script_cpu_seconds_total (\S+)$", text, re.MULTILINE)
    assert found is not None
    # Counted in hundredths of a second.
    assert before - 0.05 < float(found[1]) < time.process_time() + 0.05
    assert "alipes_worker_cpu_seconds_total" not in text


def test_a_block_serves_one_function_without_a_decorator() -> None:
    with alipes.serve(threefold, host="127.0.0.1", port=0, wait=True) as server:
        process = server.pid
        with server.client() as client:
            assert client.call("threefold", x=2) == 6
    until(lambda: is_gone(process))


def test_what_cannot_be_served_says_why() -> None:
    class Silent:
        pass

    with pytest.raises(ConfigError, match="class Silent needs a method predict or __call__"):
        Server(Silent)
    with pytest.raises(ServeError, match="image= cannot be used here: functions run in this process"):
        Server(threefold, image="some")


SCRIPT = """
import alipes


@alipes.model
def double(x: int) -> int:
    return 2 * x


double.serve(host="127.0.0.1", port=0)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_script_serves_its_function_until_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "app.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "app.py"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = line.split()[1].rstrip(";")
        address, _, name = url.removeprefix("http://").partition("/")
        with Client(f"http://{address}") as client:
            assert (name, client.call("double", x=4)) == ("double", 8)
        process.send_signal(number)
        assert process.wait(TIMEOUT_S) == (0 if number == signal.SIGINT else 128 + number)


RUN = """
import alipes


def double(x: float) -> float:
    return 2 * x


server = alipes.Server(THING, host="127.0.0.1", port=0)
print(server.pid, server.url, flush=True)
server.run()
print("it has ended")
"""


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:"))
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("thing", ['"models"', "double"])
@pytest.mark.parametrize(("number", "code", "rest"), [(signal.SIGINT, 0, "it has ended\n"), (signal.SIGTERM, 143, "")])
def test_a_server_runs_until_its_script_gets_a_signal(
    tmp_path: Path, thing: str, number: signal.Signals, code: int, rest: str
) -> None:
    add_model(tmp_path / "models", "double")
    command = [sys.executable, "-c", RUN.replace("THING", thing)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, url = process.stdout.readline().split()
        with Client(url) as client:
            assert client.is_ready("double")
        until(lambda: catches(process.pid, signal.SIGTERM), "it does not run yet")
        process.send_signal(number)
        assert (process.stdout.read(), process.wait(TIMEOUT_S)) == (rest, code)
    assert is_gone(int(pid))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("serve_forever", "run() serves until Ctrl-C"),
        ("start", "the server runs already; run() serves until Ctrl-C"),
        ("shutdown", "did you mean stop()?"),
        ("port", "did you mean http_port or grpc_port?"),
        ("predict", 'client() asks it: server.client().call("NAME", ...)'),
    ],
)
def test_names_of_other_servers_are_answered_with_ours(server: Server, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"'FunctionServer' object has no attribute '{name}': {hint}")):
        getattr(server, name)


def test_several_functions_that_are_no_list_are_refused() -> None:
    with pytest.raises(TypeError, match=r"several functions are a list: Server\(\[first, second\]\)"):
        Server(louder, describe)  # type: ignore[call-arg]


def test_a_script_that_serves_itself_is_served_by_the_command_too(tmp_path: Path, serve: Any) -> None:
    (tmp_path / "app.py").write_text(SCRIPT, encoding="utf-8")
    server = serve(tmp_path / "app.py")
    with Client(server.http) as client:
        assert client.call("double", x=4) == 8


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("", "app.py only declares models (double): serve them with\n  alipes serve app.py\n"),
        ("print(double(2))", ""),
        ('if __name__ == "__main__":\n    pass', ""),
    ],
)
def test_a_program_that_only_declares_models_says_how_they_are_served(tmp_path: Path, more: str, says: str) -> None:
    declared = SCRIPT.partition("double.serve")[0]
    (tmp_path / "app.py").write_text(declared + more, encoding="utf-8")
    done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == says
