"""Functions of a script behind a server that runs already: it loads stand-ins, which go with the script."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client as Connect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import Client
from alipes.compat.pytriton import constants
from alipes.compat.pytriton.client import DecoupledModelClient, FuturesModelClient, ModelClient
from alipes.compat.pytriton.client.exceptions import PyTritonClientInferenceServerError
from alipes.compat.pytriton.decorators import batch
from alipes.compat.pytriton.exceptions import PyTritonInvalidOperationError
from alipes.compat.pytriton.remote import RemoteTriton
from alipes.compat.pytriton.settings import ModelConfig, Tensor
from alipes.errors import AlipesError
from support.pytriton_script import ServingScript
from support.pytriton_server import bind, http, make_triton
from support.server import ServerProcess
from support.waiting import until

ONE = np.array([1], np.float32)
Serve = Callable[..., ServerProcess]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(constants, "PYTRITON_HOME", tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def server(serve: Serve, repository: Path) -> ServerProcess:
    return serve(repository, "--model-control-mode=explicit")


def address(server: ServerProcess) -> str:
    return f"http://{server.http}"


def ask(url: str, model: str = "m", value: Any = ONE) -> float:
    with ModelClient(url, model, init_timeout_s=30) as client:
        return float(client.infer_sample(value)["y"][0])


@batch
def double(x: Any) -> Any:
    if x[0, 0] < 0:
        raise FileNotFoundError("no such number")
    return {"y": 2 * x}


def test_models_come_and_go_with_the_script(server: ServerProcess, home: Path) -> None:
    url = address(server)
    with RemoteTriton(url) as triton:
        bind(triton, double)
        bind(triton, [double, double], "twice")
        assert triton.is_alive()
        assert ask(url) == 2
        with FuturesModelClient(url, "twice") as client:
            answers = [client.infer_sample(ONE * number) for number in range(20)]
            assert [float(answer.result()["y"][0]) for answer in answers] == [2 * number for number in range(20)]
    assert list(home.iterdir()) == []
    assert not [one.name for one in threading.enumerate() if one.name == "alipes-pytriton-listen"]
    with Client(url) as client:
        until(client.is_ready)
        assert [entry.name for entry in client.models() if entry.state == "READY"] == []


def test_an_exception_of_the_script_fails_its_request_alone(server: ServerProcess) -> None:
    with RemoteTriton(address(server)) as triton:
        bind(triton, double)
        with pytest.raises(
            PyTritonClientInferenceServerError, match=r"FileNotFoundError: no such number\n\nAt:\n .*: double"
        ):
            ask(address(server), value=-ONE)
        assert ask(address(server)) == 2


def test_bytes_and_parameters_cross(server: ServerProcess) -> None:
    def said(requests: Any) -> Any:
        return [{"words": np.array([[*one["words"][0], str(one.parameters).encode()]], np.object_)} for one in requests]

    words = [Tensor(name="words", dtype=bytes, shape=(-1,))]
    with RemoteTriton(address(server)) as triton:
        triton.bind("words", said, inputs=words, outputs=words, config=ModelConfig(max_batch_size=4))
        with ModelClient(address(server), "words") as client:
            answer = client.infer_sample(np.array([b"\x00\xff", b""], np.object_), parameters={"a": 1})
    assert answer["words"].tolist()[:2] == [b"\x00\xff", b""]
    assert b"'a': 1" in answer["words"][2]


def test_responses_come_one_by_one(server: ServerProcess) -> None:
    @batch
    def count(n: Any) -> Any:
        for value in range(int(n.max())):
            if value == 5:
                raise ValueError("too far")
            yield {"value": np.full_like(n, value)}

    shape: dict[str, Any] = {"dtype": np.int32, "shape": (1,)}
    with RemoteTriton(address(server)) as triton:
        triton.bind(
            "count",
            count,
            inputs=[Tensor(name="n", **shape)],
            outputs=[Tensor(name="value", **shape)],
            config=ModelConfig(decoupled=True),
        )
        with DecoupledModelClient(f"grpc://{server.grpc}", "count") as client:
            assert [int(one["value"][0]) for one in client.infer_sample(np.array([3], np.int32))] == [0, 1, 2]
            responses = client.infer_sample(np.array([9], np.int32))
            with pytest.raises(PyTritonClientInferenceServerError, match="ValueError: too far"):
                list(responses)


def test_the_token_of_another_scripts_server_opens_it() -> None:
    refused = pytest.raises(AlipesError, match=r"triton-access-token|restricted")
    with make_triton() as triton, RemoteTriton(http(triton)) as remote, refused:
        bind(remote, double)
    with make_triton() as triton, RemoteTriton(http(triton), access_token=triton.get_access_token()) as remote:
        bind(remote, double)
        assert ask(http(triton)) == 2


def test_a_server_that_does_not_load_by_name_says_so(serve: Serve, repository: Path) -> None:
    server = serve(repository)
    with RemoteTriton(address(server)) as triton, pytest.raises(AlipesError, match="not allowed"):
        bind(triton, double)


def test_nobody_connects_without_the_key(server: ServerProcess) -> None:
    with RemoteTriton(address(server)) as triton:
        bind(triton, double)
        socket = triton._listeners["m"].address["socket"]
        with pytest.raises(AuthenticationError):
            Connect(socket, "AF_UNIX", authkey=b"guessed")
        assert ask(address(server)) == 2


def test_a_long_path_of_the_workspace_is_no_matter(server: ServerProcess, tmp_path: Path) -> None:
    with RemoteTriton(address(server), workspace=tmp_path / ("x" * 100)) as triton:
        bind(triton, double)
        assert ask(address(server)) == 2


def test_a_path_that_no_socket_can_have_is_refused(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("y" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with (
        RemoteTriton(address(server), workspace=tmp_path / ("x" * 100)) as triton,
        pytest.raises(
            PyTritonInvalidOperationError, match=r"is too long for a socket: give a workspace of at most \d+ c"
        ),
    ):
        bind(triton, double)


def test_requests_fail_when_the_script_is_killed(server: ServerProcess, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(
        f"""
import numpy as np
from pytriton.model_config import Tensor
from pytriton.triton import RemoteTriton

tensor = {{"dtype": np.float32, "shape": (1,)}}
with RemoteTriton("{address(server)}") as triton:
    triton.bind("m", lambda requests: [{{"y": request["x"]}} for request in requests],
                inputs=[Tensor(name="x", **tensor)], outputs=[Tensor(name="y", **tensor)])
    triton.serve()
"""
    )
    with ServingScript(file, tmp_path, serves=False) as script:
        assert ask(address(server)) == 1
        script.process.kill()
        script.process.wait()
        with pytest.raises(PyTritonClientInferenceServerError, match="the script that serves model 'm' has ended"):
            ask(address(server))
    until(lambda: Client(address(server)).is_live())
