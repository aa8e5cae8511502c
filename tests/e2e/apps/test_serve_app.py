"""`alipes serve app.py`: functions and classes behind V2, over HTTP and gRPC, and what keeps an app from serving."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import alipes
import numpy as np
import psutil
import pytest
from alipes import Client
from support.server import ServerDidNotStart, ServerProcess
from support.waiting import until

APP = '''
import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated

import alipes
import numpy as np
import helper

NOTES = Path(__file__).parent / "notes"


@alipes.model
def add(a: float, b: float = 1.0) -> float:
    return helper.plus(a, b)


@alipes.model
def describe(rows: list[dict[str, float]]) -> dict[str, float]:
    return {"sum": sum(row["x"] for row in rows)}



@alipes.model(max_batch_size=8, max_delay=0.05)
def total(x: Annotated[np.ndarray, np.float32, (None, 3)]) -> tuple[list[int], list[int]]:
    """Says beside the sum how many rows the call had."""
    return [int(row.sum()) for row in x], [len(x)] * len(x)


barrier = asyncio.Barrier(40)


@alipes.model(concurrency=40)
async def meet(x: int) -> int:
    await barrier.wait()
    return x


@alipes.model
def count(n: int) -> Iterator[int]:
    for number in range(n):
        if number == 3:
            raise ValueError("three is too many")
        yield number


@alipes.model
async def letters(text: str) -> AsyncIterator[str]:
    for letter in text:
        await asyncio.sleep(0)
        yield letter


@alipes.model(instances=2)
class Counter:
    def __init__(self, device: str) -> None:
        self.device, self.calls = device, 0

    def setup(self) -> None:
        self.ready = True

    def predict(self, text: str) -> tuple[str, int, bool]:
        self.calls += 1
        return f"{text} on {self.device}", self.calls, self.ready

    def close(self) -> None:
        NOTES.with_name("closed").touch()


@alipes.model(start=lambda: NOTES.with_name("started").touch(), stop=lambda: NOTES.with_name("stopped").touch())
def refuse(how: str) -> str:
    if how == "not found":
        raise alipes.NotFound("there is none of that name")
    raise KeyError(how)
'''


def write(folder: Path, text: str = APP) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "helper.py").write_text("def plus(a, b):\n    return a + b\n")
    file = folder / "app.py"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("app"))


@pytest.fixture(scope="module")
def server(app: Path, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    return serve_module(app)


@pytest.fixture(params=["http", "grpc"])
def client(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[Client]:
    address = server.grpc if request.param == "grpc" else f"http://{server.http}"
    with Client(address) as made:
        yield made


def test_a_function_answers_with_its_arguments_as_tensors(client: Client) -> None:
    assert client.infer("add", {"a": [2.0], "b": [3.0]})["output_0"].tolist() == [5.0]
    assert client.infer("add", {"a": [2.0]})["output_0"].tolist() == [3.0]


def test_a_result_of_several_values_has_an_output_each(client: Client) -> None:
    answer = client.infer("counter", {"text": np.array([b"hi"], object)})
    assert answer["output_0"].tolist() == [b"hi on cpu"]
    assert answer["output_2"].tolist() == [True]


def test_a_function_of_anything_else_takes_a_document(client: Client) -> None:
    def ask(body: str) -> Any:
        return client.infer("describe", {"document": np.array([body.encode()], object)})["document"][0]

    assert json.loads(ask('{"rows": [{"x": 1}, {"x": 2.5}]}')) == {"sum": 3.5}
    with pytest.raises(Exception, match=r"\$\.rows\[1\]\['x'\]: expected float, got str"):
        ask('{"rows": [{"x": 1}, {"x": "a"}]}')


def test_requests_that_come_together_are_one_call(server: ServerProcess) -> None:
    answers: list[Any] = []

    def ask(number: int) -> None:
        with Client(server.grpc) as own:
            x = np.full((1, 3), number, np.float32)
            answers.append((number, own.infer("total", {"x": x})))

    for _ in range(20):  # on a busy machine they may come one after the other
        answers.clear()
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(answer["output_0"].tolist() == [[3 * number]] for number, answer in answers)
        if max(int(answer["output_1"][0, 0]) for _, answer in answers) > 1:
            return
    pytest.fail("no two of eight requests were ever together")


def test_coroutines_run_side_by_side(server: ServerProcess) -> None:
    ended: list[int] = []

    def ask(number: int) -> None:
        with Client(server.grpc) as own:
            ended.append(int(own.infer("meet", {"x": [number]})["output_0"][0]))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == [*range(40)], "each waits until all of them are there"


def test_a_generator_is_a_stream(server: ServerProcess) -> None:
    with Client(server.grpc) as client:
        answers = client.stream("letters", {"text": np.array([b"abc"], object)})
        assert [answer["output_0"].tolist() for answer in answers] == [[b"a"], [b"b"], [b"c"]]
        seen = []
        with pytest.raises(Exception, match="ValueError: three is too many"):
            for answer in client.stream("count", {"n": [5]}):
                seen.append(int(answer["output_0"][0]))
        assert seen == [0, 1, 2]


def test_an_exception_of_the_function_is_its_answer(client: Client, server: ServerProcess) -> None:
    with pytest.raises(Exception, match="there is none of that name") as raised:
        client.infer("refuse", {"how": np.array([b"not found"], object)})
    assert type(raised.value).__name__ == "NotFound"
    with pytest.raises(Exception, match="KeyError: 'else'") as raised:
        client.infer("refuse", {"how": np.array([b"else"], object)})
    assert type(raised.value).__name__ == "Internal"
    assert "app.py" not in str(raised.value), "places are for the log alone"
    server.wait_for_output("in refuse")


def test_hooks_are_called_and_nothing_is_left(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    app = write(tmp_path / "app")
    server = serve(f"{app}:refuse", environment={"TMPDIR": str(temporary)})
    assert (app.parent / "started").exists()
    assert len(list(temporary.iterdir())) == 1
    assert server.stop() == 0
    assert (app.parent / "stopped").exists()
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in app.parent.iterdir()) == ["app.py", "helper.py", "started", "stopped"]


def test_an_app_and_a_folder_of_models_are_served_together(
    tmp_path: Path, repository: Path, serve: Callable[..., ServerProcess]
) -> None:
    app = write(tmp_path)
    folder = repository / "echo" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(
        "import triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n"
        "    def execute(self, requests):\n"
        "        return [pb_utils.InferenceResponse([pb_utils.Tensor('Y', one.inputs()[0].as_numpy())])"
        " for one in requests]\n"
    )
    (folder.parent / "config.pbtxt").write_text(
        'backend: "python"\ninput { name: "X" data_type: TYPE_INT64 dims: 1 }\n'
        'output { name: "Y" data_type: TYPE_INT64 dims: 1 }\n'
    )
    server = serve(f"{app}:add", str(repository), "--model-control-mode=explicit")
    with Client(server.grpc) as client:
        assert client.infer("add", {"a": [1.0]})["output_0"].tolist() == [2.0]
    server = serve(f"{app}:add", str(repository))
    with Client(server.grpc) as client:
        assert client.infer("add", {"a": [1.0]})["output_0"].tolist() == [2.0]
        assert client.infer("echo", {"X": [7]})["Y"].tolist() == [7]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("x = 1\n", "and broken.py has none: write it above one"),
        ("def broken(:\n", "line 1"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("import os\nos._exit(3)\n", "ended with exit code 3"),
        ("import alipes\n@alipes.model\ndef f(x: complex): ...\n", "argument 'x' has the type builtins.complex"),
        ("import alipes\n@alipes.model(name='v2')\ndef f(x: int): ...\n", "the server has /v2 for itself"),
        (
            "import alipes\n@alipes.model(name='a')\ndef f(x: int): ...\n@alipes.model(name='a')\ndef g(x: int): ...\n",
            "two models are called 'a'",
        ),
    ],
)
def test_an_app_that_cannot_be_served_is_one_message(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)
    with ServerProcess(file) as server, pytest.raises(ServerDidNotStart) as raised:
        server.wait_until_started()
    assert raised.value.exit_code == 1
    assert said in raised.value.output
    assert "error: " in raised.value.output


def test_models_of_one_name_in_two_apps_are_refused(tmp_path: Path) -> None:
    one, other = write(tmp_path / "one"), write(tmp_path / "two")
    with ServerProcess(one, str(other)) as server, pytest.raises(ServerDidNotStart, match="two models are called"):
        server.wait_until_started()


def test_a_module_is_served_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "package")
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "more.py").write_text(
        "import alipes\n\n\n@alipes.model\ndef same(x: int) -> int:\n    return x\n"
    )
    with ServerProcess("package.more:same", folder=tmp_path) as server:
        server.wait_until_started()
        with Client(server.grpc) as client:
            assert client.infer("same", {"x": [5]})["output_0"].tolist() == [5]


def test_a_script_starts_a_server_of_an_app(tmp_path: Path) -> None:
    app = write(tmp_path)
    with alipes.Server(f"{app}:add", host="127.0.0.1", port=0) as server, server.client() as client:
        assert client.infer("add", {"a": [2.0]})["output_0"].tolist() == [3.0]


def test_an_import_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(
        "import os, pathlib, time\npathlib.Path(__file__).with_name('pid').write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    note = tmp_path / "pid"
    with ServerProcess(file) as server:
        until(lambda: note.exists() and note.read_text())
        process = psutil.Process(int(note.read_text()))
        server.signal(signal.SIGKILL)
        process.wait(60)


def test_an_interrupt_while_an_app_is_imported_ends_the_server(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("import os, pathlib, time\npathlib.Path(__file__).with_name('pid').touch()\ntime.sleep(600)\n")
    with ServerProcess(file) as server:
        until((tmp_path / "pid").exists)
        server.signal(signal.SIGINT)
        assert server.wait() == 130
        assert "Traceback" not in server.output
