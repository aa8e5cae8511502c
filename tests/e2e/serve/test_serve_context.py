"""`with serve(...)`: a server for as long as a block runs."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from alipes import repository as qv
from alipes.errors import ServeError, ServeTimeout
from alipes.local_ports import resolve
from alipes.serve import Instance, gpus, serve
from support.containers import LOOPBACK, stand_in
from support.models import add_model, times
from support.processes import is_gone
from support.waiting import TIMEOUT_S, until


@pytest.fixture
def models(repository: Path) -> Path:
    add_model(repository, "times", times())
    return repository


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), os.environ["PATH"]]))
    return folder


def _holds(listener: socket.socket, port: int) -> bool:
    with contextlib.suppress(OSError):
        listener.bind(("", port))
        listener.listen()
        return True
    return False


@contextlib.contextmanager
def somebody_at(port: int) -> Iterator[None]:
    """A port in use throughout the block, by this test or by another program.

    Tests beside this one hold the same port with it (`SO_REUSEPORT`); a server of theirs is waited for, since it may
    end within the block. What stays for longer than that is another program.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with contextlib.suppress(AssertionError):
            until(lambda: _holds(listener, port), timeout_s=20)
        yield


def ask(address: str, path: str) -> int:
    with urlopen(f"http://{address}{path}", timeout=TIMEOUT_S) as response:
        status: int = response.status
        return status


def test_a_server_is_there_for_the_block_and_nothing_of_it_after(models: Path) -> None:
    with serve(models, server_args=LOOPBACK) as instance:
        instance.wait(timeout=TIMEOUT_S)
        assert ask(instance.http, "/v2/models/times/ready") == 200
        assert ask(instance.metrics, "/metrics") == 200
        assert instance.status() == "ready"
        assert "Started HTTPService" in instance.log
        pid, log = instance.pid, instance.log_path
    assert is_gone(pid)
    assert instance.status() == "ended"
    assert not log.parent.exists()


def test_a_wait_may_come_with_the_start(models: Path) -> None:
    with serve(models, server_args=LOOPBACK, wait=True) as instance:
        assert ask(instance.http, "/v2/health/ready") == 200


def test_a_folder_without_a_model_is_not_waited_for(models: Path) -> None:
    (models / "never_exported").mkdir()
    with serve(models, server_args=LOOPBACK, wait=True) as instance:
        assert ask(instance.http, "/v2/health/ready") == 200


def test_usual_ports_lead_to_the_server_when_in_use_by_others(models: Path, caplog: pytest.LogCaptureFixture) -> None:
    flags = [flag for flag in LOOPBACK if "port" not in flag]
    with somebody_at(8000), somebody_at(8001), somebody_at(8002), serve(models, server_args=flags) as instance:
        instance.wait(timeout=TIMEOUT_S)
        (warning,) = [record.message for record in caplog.records if "in use: the server" in record.message]
        assert f"http at {instance.http}, grpc at {instance.grpc}, metrics at {instance.metrics};" in warning
        assert "still find them at these ports of localhost, other clients need the address" in warning
        assert resolve("localhost:8000") == instance.http
        assert resolve("localhost:8001") == instance.grpc
        assert resolve("http://localhost:8002/metrics") == f"http://{instance.metrics}/metrics"
        assert ask(resolve("localhost:8000"), "/v2/models/times/ready") == 200
    assert resolve("localhost:8000") == "localhost:8000"


CHILD = """
import multiprocessing, subprocess, sys
from alipes.client import Client
from alipes.serve import serve

def ask(found):
    with Client("grpc://localhost:8001") as client:
        found.put(client.metadata("times")["name"])

if __name__ == "__main__":
    with serve(sys.argv[1], server_args=sys.argv[2:], wait=True):
        for method in ("spawn", "fork"):
            context = multiprocessing.get_context(method)
            found = context.Queue()
            process = context.Process(target=ask, args=(found,))
            process.start()
            print(method, found.get())
            process.join()
        code = "import queue; from script import ask; found = queue.Queue(); ask(found); print(found.get())"
        print("subprocess", subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout, end="")
"""


def test_children_of_a_script_find_its_server_and_not_a_stranger(models: Path) -> None:
    (models.parent / "script.py").write_text(CHILD)
    flags = [flag for flag in LOOPBACK if "port" not in flag]
    with somebody_at(8000), somebody_at(8001), somebody_at(8002):
        done = subprocess.run(
            [sys.executable, "script.py", str(models), *flags],
            cwd=models.parent,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.stdout == "spawn times\nfork times\nsubprocess times\n", done.stderr
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("ports 8000, 8001 and 8002 are in use: the server alipes-")
    assert re.search(r"http at 127\.0\.0\.1:\d+, grpc at 127\.0\.0\.1:\d+, metrics at 127\.0\.0\.1:\d+; ", warning)


def test_blocks_within_each_other_leave_the_environment_as_it_was(models: Path) -> None:
    before = dict(os.environ)
    with serve(models, server_args=LOOPBACK) as outer:
        alone = dict(os.environ)
        with serve(models, server_args=LOOPBACK) as inner:
            assert resolve("localhost:8001") == inner.grpc
        assert dict(os.environ) == alone != before
        assert resolve("localhost:8001") == outer.grpc
    assert dict(os.environ) == before


def test_where_the_usual_ports_are_free_the_server_has_them(models: Path) -> None:
    script = (
        "import sys\nfrom alipes.serve import serve\n"
        "with serve(sys.argv[1]) as instance:\n"
        "    instance.wait()\n    print(instance.http, instance.grpc, instance.metrics)"
    )
    # A network of its own, whose loopback device has to be switched on.
    up = (
        "import fcntl, os, socket, struct, sys\n"
        "with socket.socket() as s: fcntl.ioctl(s, 0x8914, struct.pack('16sH14x', b'lo', 1))\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    alone = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system gives no network of its own to a user")
    done = subprocess.run(
        [*alone, sys.executable, "-c", up, "-c", script, str(models)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["127.0.0.1:8000", "127.0.0.1:8001", "127.0.0.1:8002"], "")


def test_several_servers_run_beside_each_other(models: Path) -> None:
    together = threading.Barrier(3)

    def one(found: list[str]) -> None:
        together.wait(TIMEOUT_S)
        with serve(models, server_args=LOOPBACK) as instance:
            instance.wait_until_ready(TIMEOUT_S)
            found.append(instance.grpc)
            together.wait(TIMEOUT_S)

    before = dict(os.environ)
    addresses: list[str] = []
    threads = [threading.Thread(target=one, args=(addresses,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert len(set(addresses)) == 3
    assert dict(os.environ) == before


def test_a_wait_names_an_entry_that_was_never_exported(tmp_path: Path) -> None:
    model = qv.ModelRepository(tmp_path / "repo").add("never", qv.Platform.ONNX)
    model.config.write()
    with (
        pytest.raises(ServeError, match="will not be ready: never has no version: export something to it"),
        serve(tmp_path / "repo", server_args=LOOPBACK, wait=True),
    ):
        pass


def test_the_older_of_two_servers_can_be_waited_for_by_the_usual_name(models: Path) -> None:
    with serve(models, server_args=LOOPBACK) as older, serve(models, server_args=LOOPBACK) as newer:
        older.wait(timeout=TIMEOUT_S)
        newer.wait(timeout=TIMEOUT_S)
        assert resolve("localhost:8001") == newer.grpc


def test_a_start_is_tried_again_on_another_port(models: Path, programs: Path) -> None:
    port_in_use = "echo \"Socket '0.0.0.0:8001' already in use\"; exit 1"
    calls = stand_in(programs, "apptainer", f"[ -e {programs}/again ] || {{ touch {programs}/again; {port_in_use}; }}")
    image = models / ".." / "image.sif"
    image.touch()
    with serve(models, image.resolve(), server_args=LOOPBACK) as instance:
        instance.wait(timeout=TIMEOUT_S)
        assert resolve("localhost:8001") == instance.grpc
    assert len(calls.read_text().splitlines()) >= 2


@pytest.mark.parametrize("runtime", ["apptainer", "docker", "podman"])
def test_an_image_is_run_by_what_runs_images(runtime: str, models: Path, programs: Path, tmp_path: Path) -> None:
    calls = stand_in(programs, runtime)
    image = tmp_path / "image.sif"
    image.touch()
    with serve(models, image, server_args=LOOPBACK, runtime=runtime) as instance:  # type: ignore[arg-type]
        instance.wait(timeout=TIMEOUT_S)
        assert ask(instance.http, "/v2/models/times/ready") == 200
        pid = instance.pid
    assert is_gone(pid)
    assert str(image) in calls.read_text()


def test_a_server_that_ended_is_a_value_error_with_what_it_wrote(
    models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(models, server_args=[*LOOPBACK, "--no-such-flag"]) as instance:
        with pytest.raises(ValueError, match=r"exit status 2.*\n(.*\n)*.*no-such-flag"):
            instance.wait()
        assert instance.status() == "ended"
    assert "has ended: it ended with exit status 2" in caplog.text


def test_a_model_that_cannot_be_loaded_ends_the_wait_with_its_reason(models: Path) -> None:
    (models / "times" / "1" / "model.onnx").write_bytes(b"no model")
    with serve(models, server_args=LOOPBACK) as instance, pytest.raises(ServeError, match="times"):
        instance.wait()


def test_a_time_out_is_what_python_and_older_scripts_catch(models: Path, programs: Path) -> None:
    stand_in(programs, "apptainer", "exec tail -f /dev/null")
    image = models / ".." / "image.sif"
    image.touch()
    with serve(models, image.resolve()) as instance:
        with pytest.raises(TimeoutError, match=r"was not ready within 0\.1 seconds"):
            instance.wait(timeout=0.1)
        with pytest.raises(RuntimeError):
            instance.wait(timeout=0.1)
        with pytest.raises(ServeTimeout):
            instance.wait(timeout=0.1, log_interval=0.01)
        assert instance.status() == "starting"


def test_a_wait_for_an_unknown_endpoint_names_those_there_are(models: Path) -> None:
    with (
        serve(models, server_args=LOOPBACK) as instance,
        pytest.raises(ServeError, match=r"is no endpoint.*grpc at 127\.0"),
    ):
        instance.wait(endpoint="localhost:1")


def test_the_log_goes_to_the_file_that_the_script_names(models: Path, tmp_path: Path) -> None:
    log = tmp_path / "a folder" / "server.log"
    log.parent.mkdir()
    with serve(models, server_args=LOOPBACK, log_file=log, wait=True):
        pass
    assert "Started GRPCInferenceService" in log.read_text()


def test_an_unwritable_log_is_an_error_before_anything_runs(models: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(ServeError, match=r"log .*server\.log cannot be written"),
        serve(models, log_file=tmp_path / "none" / "server.log"),
    ):
        pass


def test_a_server_that_says_little_is_still_waited_for(models: Path) -> None:
    with serve(models, server_args=[*LOOPBACK, "--log-info=false"], wait=True) as instance:
        assert ask(instance.http, "/v2/health/ready") == 200


def test_a_missing_gpu_is_logged_once_and_the_cpu_is_used(
    models: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gpus, "_warned", False)
    monkeypatch.setattr(gpus, "has_gpu", lambda: False)
    config = models / "times" / "config.pbtxt"
    config.write_text("instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with serve(models, gpus=[0], server_args=LOOPBACK, wait=True) as instance:
                assert ask(instance.http, "/v2/models/times/ready") == 200
    assert [record.message for record in caplog.records if "machine has none" in record.message] == [
        f"gpus=[0] asks for a GPU and this machine has none: models run on the CPU (pid {os.getpid()})"
    ]


def test_the_gpus_of_a_script_reach_the_servers_own_environment(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    with serve(models, gpus=[1], server_args=LOOPBACK, wait=True) as instance:
        environment = Path(f"/proc/{instance.pid}/environ").read_bytes().split(b"\0")
    assert b"CUDA_VISIBLE_DEVICES=5" in environment


def test_an_error_in_the_block_ends_the_server_and_is_not_changed(models: Path) -> None:
    seen: list[Instance] = []
    with pytest.raises(ZeroDivisionError), serve(models, server_args=LOOPBACK) as instance:
        seen.append(instance)
        1 / 0  # noqa: B018
    assert seen[0].status() == "ended"


def test_the_thread_that_started_a_server_may_end_before_it(models: Path) -> None:
    block = serve(models, server_args=LOOPBACK, wait=True)
    entered: list[Instance] = []
    starter = threading.Thread(target=lambda: entered.append(block.__enter__()))
    starter.start()
    starter.join(TIMEOUT_S)
    try:
        assert ask(entered[0].http, "/v2/health/ready") == 200
        assert not is_gone(entered[0].pid)
    finally:
        block.__exit__(None, None, None)


def test_a_script_that_is_killed_leaves_no_server(models: Path) -> None:
    script = (
        "import signal, sys\nfrom alipes.serve import serve\n"
        "with serve(sys.argv[1], server_args=sys.argv[2:], wait=True) as instance:\n"
        "    print(instance.pid, flush=True)\n    signal.pause()"
    )
    # Only the test can tidy up after it: its folder for temporary files is the test's.
    place = os.environ | {"TMPDIR": str(models.parent)}
    command = [sys.executable, "-c", script, str(models), *LOOPBACK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=place) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    until(lambda: is_gone(pid), "the server outlived the script that started it")
