"""When a server of a script starts, what it needs a token for, and how it ends."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from alipes import Client, ServeError
from alipes.compat.pytriton import constants
from alipes.compat.pytriton.client import ModelClient
from alipes.compat.pytriton.client.auth import create_auth_headers
from alipes.compat.pytriton.client.exceptions import PyTritonClientInferenceServerError
from alipes.compat.pytriton.decorators import batch
from alipes.compat.pytriton.exceptions import PyTritonUnrecoverableError
from alipes.compat.pytriton.policy import TritonLifecyclePolicy, TritonSecurityConfig
from alipes.compat.pytriton.server_config import TritonConfig
from alipes.compat.pytriton.triton import Triton
from alipes.errors import AlipesError
from support.processes import is_gone
from support.pytriton_script import ServingScript
from support.pytriton_server import bind, http, make_triton
from support.waiting import until

ONE = np.array([1], np.float32)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(constants, "PYTRITON_HOME", tmp_path / "home")
    return tmp_path / "home"


@batch
def double(x: Any) -> Any:
    return {"y": 2 * x}


def ask(triton: Triton, **options: Any) -> float:
    with ModelClient(http(triton), "m", init_timeout_s=30, **options) as client:
        return float(client.infer_sample(ONE)["y"][0])


def test_a_server_runs_for_its_with_and_leaves_nothing(home: Path) -> None:
    with make_triton() as triton:
        assert not list(home.glob("*/model-store/*"))
        assert triton.is_alive()
        assert triton.is_connected()
        bind(triton, double)
        assert ask(triton) == 2
        pid = triton._attachment.server.pid  # type: ignore[union-attr]
    assert not triton.is_alive()
    assert not triton.is_connected()
    assert list(home.iterdir()) == []
    assert not triton.stop()
    until(lambda: is_gone(pid))


def test_models_are_bound_before_a_server_that_run_starts() -> None:
    policy = TritonLifecyclePolicy(launch_triton_on_startup=False, local_model_store=True)
    with make_triton(triton_lifecycle_policy=policy) as triton:
        bind(triton, double)
        assert not triton.is_alive()
        assert not triton.is_connected()
        triton.run()
        assert ask(triton) == 2
        assert triton.stop()
        assert not triton.is_alive()


def test_changes_need_the_token_and_requests_do_not() -> None:
    with make_triton() as triton:
        bind(triton, double)
        token = triton.get_access_token()
        assert token is not None
        assert ask(triton) == 2
        with Client(http(triton)) as client:
            for call in (lambda: client.unload("m"), client.statistics, client.models):
                with pytest.raises(AlipesError, match=r"triton-access-token|restricted"):
                    call()
        with Client(http(triton), headers=create_auth_headers(token, "http")) as client:
            assert client.statistics("m")[0]["inference_count"] == 1
        with ModelClient(http(triton), "m", access_token=token) as holder:
            holder.unload_model()
            holder.load_model()
        assert ask(triton) == 2


def test_all_may_be_open_or_more_be_closed() -> None:
    with make_triton(security_config=TritonSecurityConfig(restricted_endpoints=[])) as triton:
        assert triton.get_access_token() is None
        with Client(http(triton)) as client:
            assert client.statistics() == []
    closed = TritonSecurityConfig("secret", ["inference"])
    with make_triton(security_config=closed) as triton:
        bind(triton, double)
        with pytest.raises(PyTritonClientInferenceServerError):
            ask(triton)
        assert ask(triton, access_token="secret") == 2


def test_restrictions_of_the_script_stand_beside_the_token() -> None:
    config = {"http_restricted_api": "metadata,statistics:key=value", "allow_grpc": False}
    with make_triton(config, security_config=TritonSecurityConfig("secret")) as triton:
        bind(triton, double)
        with Client(http(triton), headers={"key": "value"}) as client:
            assert client.server_metadata()["name"]
            assert client.statistics("m")[0]["name"] == "m"


def test_over_grpc_alone() -> None:
    with make_triton({"allow_http": False}) as triton:
        bind(triton, double)
        assert http(triton).startswith("grpc://")
        assert ask(triton) == 2


def test_a_verbose_log_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "alipes.compat.pytriton"):
        with make_triton({"log_verbose": 0}):
            pass
        assert "verbose" not in caplog.text
        with make_triton({"log_verbose": 4}) as triton:
            bind(triton, double)
            assert ask(triton) == 2
    warning = "Triton Inference Server is running with enabled verbose logs (log_verbose_level=4)."
    assert [record.getMessage().partition(" It")[0] for record in caplog.records] == [warning]


def test_an_option_that_is_not_offered_is_one_error() -> None:
    with pytest.raises(ServeError, match="sagemaker"):
        make_triton({"allow_sagemaker": True}).run()


def test_a_workspace_is_made_and_goes(tmp_path: Path) -> None:
    with make_triton(workspace=tmp_path / "mine") as triton:
        assert (tmp_path / "mine").is_dir()
        bind(triton, double)
    assert not (tmp_path / "mine").exists()
    with pytest.raises(FileExistsError):
        Triton(workspace=tmp_path)


def test_an_unrecoverable_error_ends_serve() -> None:
    def give_up(requests: Any) -> Any:
        raise PyTritonUnrecoverableError("the device is gone")

    triton = make_triton()
    bind(triton, give_up)
    serving = Thread(target=triton.serve)
    serving.start()
    with pytest.raises(PyTritonClientInferenceServerError, match="PyTritonUnrecoverableError: the device is gone"):
        ask(triton)
    serving.join()
    assert not triton.is_alive()


def test_serve_returns_when_its_server_is_killed() -> None:
    triton = make_triton()
    bind(triton, double)
    triton.run()
    triton._attachment.server._source.stop()  # type: ignore[union-attr]
    triton.serve(monitoring_period_s=60)
    assert not triton.is_alive()


def test_a_server_may_be_started_again() -> None:
    triton = make_triton()
    bind(triton, double)
    triton.run()
    assert ask(triton) == 2
    assert triton.stop()
    bind(triton, double)
    triton.run()
    assert ask(triton) == 2
    assert triton.stop()


def test_options_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRITON_TRITON_CONFIG_HTTP_PORT", "4567")
    monkeypatch.setenv("PYTRITON_TRITON_CONFIG_CACHE_CONFIG_1", "local,size=2")
    monkeypatch.setenv("PYTRITON_TRITON_CONFIG_CACHE_CONFIG_0", "local,size=1")
    monkeypatch.setenv("PYTRITON_TRITON_CONFIG_LOG_VERBOSE", "1")
    assert TritonConfig.from_env() == TritonConfig(
        http_port=4567, cache_config=["local,size=1", "local,size=2"], log_verbose=1
    )
    assert Triton(config=TritonConfig(log_verbose=2))._config == TritonConfig(
        http_port=4567, cache_config=["local,size=1", "local,size=2"], log_verbose=2
    )


SCRIPT = """
import numpy as np
from pytriton.model_config import Tensor
from pytriton.triton import Triton

triton = Triton()
tensor = Tensor(name="x", dtype=np.float32, shape=(1,))
triton.bind("m", lambda requests: [{"x": request["x"]} for request in requests], inputs=[tensor], outputs=[tensor])
triton.run()
print("pid", triton._attachment.server.pid, flush=True)
END
"""


@pytest.mark.parametrize(
    ("end", "status"),
    [("", 0), ("raise SystemExit(3)", 3), ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9)],
    ids=["end of the script", "exit", "SIGKILL"],
)
def test_a_server_ends_with_its_script(end: str, status: int, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    # Not before its server was seen: an end that comes sooner would look like a failed start.
    awaited = "while not Path('seen').exists():\n    time.sleep(0.01)\n"
    file.write_text("import time\nfrom pathlib import Path\n" + SCRIPT.replace("END", awaited + end))
    with ServingScript(file, tmp_path) as script:
        (tmp_path / "seen").touch()
        output, _ = script.process.communicate(timeout=60)
        assert script.process.returncode == status, output
        until(lambda: is_gone(int(output.split()[1])))
        assert status < 0 or list(script.home.iterdir()) == []


@pytest.fixture
def busy_port() -> Iterator[int]:
    """A port that another program has."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_server_that_cannot_start_leaves_nothing(home: Path, busy_port: int) -> None:
    with pytest.raises(ServeError, match=str(busy_port)), make_triton({"http_port": busy_port}):
        pass
    assert list(home.iterdir()) == []
    triton = make_triton({"http_port": busy_port})
    with pytest.raises(ServeError, match=str(busy_port)):
        triton.run()
    assert not triton.stop()
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "status"),
    [("triton = Triton(config=TritonConfig(http_port={busy_port}))", 1), ("Triton(); raise SystemExit(3)", 3)],
    ids=["a port in use", "never started"],
)
def test_a_script_without_a_server_leaves_nothing(line: str, status: int, tmp_path: Path, busy_port: int) -> None:
    file = tmp_path / "script.py"
    opened = line.format(busy_port=busy_port)
    text = SCRIPT.replace("import Triton\n", "import Triton, TritonConfig\n").replace("triton = Triton()", opened)
    file.write_text(text)
    with ServingScript(file, tmp_path, serves=False) as script:
        output, _ = script.process.communicate(timeout=60)
        assert script.process.returncode == status, output
        assert list(script.home.iterdir()) == []


def test_ctrl_c_answers_what_is_under_way(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(
        """
import time
from pathlib import Path

import numpy as np
from pytriton.model_config import Tensor
from pytriton.triton import Triton

def slow(requests):
    Path("begun").touch()
    time.sleep(1)
    return [{"x": request["x"]} for request in requests]

tensor = Tensor(name="x", dtype=np.float32, shape=(1,))
with Triton() as triton:
    triton.bind("m", slow, inputs=[tensor], outputs=[tensor])
    triton.serve()
print("after")
"""
    )
    with ServingScript(file, tmp_path) as script, ModelClient(script.http, "m") as client:
        client.wait_for_model(60)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client.infer_sample, ONE)
            until((tmp_path / "begun").exists)
            assert script.interrupt() == "after\n"
            assert answer.result()["x"] == 1
