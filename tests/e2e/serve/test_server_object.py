"""`Server(repository)`: a server process that runs for as long as its object."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from alipes import Client, NotReady, ServeError, Server, ServeTimeout, attach, launch, serve
from support.models import add_model, times
from support.processes import is_gone
from support.waiting import TIMEOUT_S, until

LOCAL = {"host": "127.0.0.1", "port": 0}
X = np.array([[1, 2]], np.float32)


@pytest.fixture
def models(repository: Path) -> Path:
    add_model(repository, "times", times())
    return repository


@pytest.fixture
def server(models: Path) -> Iterator[Server]:
    with Server(models, model_control_mode="explicit", load_model=["*"], timeout=TIMEOUT_S, **LOCAL) as server:
        yield server


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    """A script of its own, which tells its server's process by its first line."""
    words = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_server_answers_once_it_is_made_and_is_gone_after_its_block(models: Path) -> None:
    with Server(models, timeout=TIMEOUT_S, **LOCAL) as server:
        assert server.ready() is True
        with server.client() as client:
            np.testing.assert_array_equal(client.infer("times", X), 2 * X)
        pid, log = server.pid, server.log_path
    assert is_gone(pid)
    assert not log.parent.exists()
    server.close()


def test_a_server_says_where_it_listens_in_words_that_clients_take(server: Server) -> None:
    assert server.url == f"http://{server.http}"
    for address in (server.url, server.grpc_url):
        with Client(address) as client:
            np.testing.assert_array_equal(client.infer("times", X), 2 * X)
    with urlopen(server.metrics_url, timeout=TIMEOUT_S) as response:
        assert b"nv_inference_request_success" in response.read()
    assert "Started HTTPService" in server.log
    assert repr(server).startswith("<Server alipes-")


def test_models_are_loaded_unloaded_listed_and_counted_through_the_server(server: Server) -> None:
    assert [(entry.name, entry.version) for entry in server.models()] == [("times", "1")]
    server.unload("times")
    assert server.ready("times") is False
    server.load("times")
    assert server.ready("times") is server.ready("times", 1) is True
    with server.client() as client:
        client.infer("times", X)
    (statistics,) = server.statistics("times")
    assert statistics["inference_stats"]["success"]["count"] == 1
    assert server.statistics()[0]["name"] == "times"


def test_a_server_that_does_not_load_by_name_says_how_one_is_started(models: Path) -> None:
    with Server(models, **LOCAL) as server:
        for verb in (server.load, server.unload):
            with pytest.raises(NotReady, match='start the server with model_control_mode="explicit"'):
                verb("times")


def test_without_grpc_a_client_asks_over_http(models: Path) -> None:
    with Server(models, allow_grpc=False, **LOCAL) as server, server.client() as client:
        assert client.endpoint.wire == "http"
        assert client.is_model_ready("times")
        with pytest.raises(ServeError, match="has no grpc endpoint: its flags disable it"):
            server.grpc_url  # noqa: B018


def test_a_server_without_http_is_waited_for_over_grpc(models: Path) -> None:
    with Server(models, allow_http=False, timeout=TIMEOUT_S, **LOCAL) as server:
        assert server.ready("times")
        assert server.status() == "ready"
    (models / "times" / "1" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ServeError, match="runs and will not be ready: times version 1: "):
        Server(models, allow_http=False, timeout=TIMEOUT_S, **LOCAL)


def test_a_client_of_a_block_is_there_when_the_server_is(models: Path) -> None:
    with serve(models, **LOCAL) as server, server.client() as client:
        np.testing.assert_array_equal(client.infer("times", X), 2 * X)


def test_a_client_of_a_server_that_ended_is_refused_with_the_reason(models: Path) -> None:
    with (
        serve(models, server_args=["--no-such-flag"], **LOCAL) as server,
        pytest.raises(ServeError, match=r"does not run: it ended with exit status 2\n(.*\n)*.*no-such-flag"),
    ):
        server.client()
    with pytest.raises(ServeError, match="does not run: it ended with exit status 2"):
        server.models()


def test_each_of_two_servers_answers_at_its_own_address(models: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    add_model(other, "times", times(3.0))
    with Server(models, **LOCAL) as doubles, Server(other, **LOCAL) as triples:
        assert doubles.url != triples.url
        with doubles.client() as client:
            np.testing.assert_array_equal(client.infer("times", X), 2 * X)
        with triples.client() as client:
            np.testing.assert_array_equal(client.infer("times", X), 3 * X)


def test_a_server_that_is_not_waited_for_can_be_waited_for_later(models: Path) -> None:
    with Server(models, wait=False, **LOCAL) as server:
        server.wait_until_ready(TIMEOUT_S)
        assert server.ready("times")


def test_a_server_ends_with_its_object(models: Path) -> None:
    server = Server(models, **LOCAL)
    pid = server.pid
    del server
    gc.collect()
    assert is_gone(pid)


SCRIPT = """
    import os, sys
    from alipes import Server
    server = Server(sys.argv[1], host="127.0.0.1", port=0)
    print(server.pid, server.log_path.parent, flush=True)
"""


def test_a_server_ends_with_the_script(models: Path) -> None:
    with run(SCRIPT, models) as script:
        out, _ = script.communicate(timeout=TIMEOUT_S)
    pid, folder = out.split()
    assert script.returncode == 0
    assert is_gone(int(pid))
    assert not Path(folder).exists()


def test_a_server_ends_with_a_script_that_is_killed(models: Path) -> None:
    with run(SCRIPT + "    sys.stdin.read()\n", models) as script:
        assert script.stdout is not None
        pid = int(script.stdout.readline().split()[0])
        script.send_signal(signal.SIGKILL)
        until(lambda: is_gone(pid))


def test_a_fork_does_not_stop_the_server(models: Path) -> None:
    forks = """
    if os.fork() == 0:
        server.stop()
        del server
        sys.exit(0)
    assert os.wait()[1] == 0
    assert server.ready("times") and server.log_path.exists()
    print("ready")
"""
    with run(SCRIPT + forks, models) as script:
        out, _ = script.communicate(timeout=TIMEOUT_S)
    assert out.split()[-1] == "ready"
    assert is_gone(int(out.split()[0]))


def test_a_block_in_a_fork_does_not_stop_the_server(models: Path) -> None:
    forks = """
        import os, sys
        from alipes import serve
        with serve(sys.argv[1], wait=True, host="127.0.0.1", port=0) as server:
            print(server.pid, flush=True)
            fork = os.fork()
            if fork == 0:
                sys.exit(0)
            os.waitpid(fork, 0)
            assert server.ready("times") and server.log_path.exists()
            print("ready")
    """
    with run(forks, models) as script:
        out, _ = script.communicate(timeout=TIMEOUT_S)
    assert out.split()[-1] == "ready"


def test_a_start_that_fails_tells_the_reason_and_leaves_nothing(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (models / "times" / "1" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ServeError, match="failed to load 'times' version 1: ") as caught:
        Server(models, exit_on_error=True, timeout=TIMEOUT_S, **LOCAL)
    assert len(str(caught.value).splitlines()) <= 4
    assert "loading: times:1" in caught.value.log
    with pytest.raises(ServeError, match="runs and will not be ready: times version 1: ") as caught:
        Server(models, timeout=TIMEOUT_S, **LOCAL)
    assert "loading: times:1" in caught.value.log
    assert not list((tmp_path / "temporary").iterdir())


def test_a_model_that_is_to_load_and_is_not_there_ends_the_wait(models: Path) -> None:
    with pytest.raises(ServeError, match="will not be ready: failed to poll model 'nope': model not found"):
        Server(models, model_control_mode="explicit", load_model=["nope"], timeout=TIMEOUT_S, **LOCAL)


def test_a_time_that_is_up_leaves_no_server(models: Path, tmp_path: Path) -> None:
    with pytest.raises(ServeTimeout, match=r"was not ready within 0\.001 seconds"):
        Server(models, timeout=0.001, log_file=tmp_path / "server.log", **LOCAL)


def test_a_server_that_stays_has_the_same_calls(models: Path, tmp_path: Path) -> None:
    with launch(models, tmp_path / "server.json", timeout=TIMEOUT_S, **LOCAL) as server:
        assert server.pid != os.getpid()
    with attach(tmp_path / "server.json") as server:
        try:
            assert server.ready("times")
            assert [entry.name for entry in server.models()] == ["times"]
            assert server.url == f"http://{server.http}"
        finally:
            server.stop()
