"""`ServerMonitor`: what servers did, in a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from alipes.errors import MonitorError, TransportError
from alipes.monitor import ServerMonitor, read_rows
from alipes.serve import Instance, serve
from support.containers import LOOPBACK
from support.fake_monitored import FakeMonitored, counters
from support.models import add_model, times
from support.ports import unused_address
from support.processes import is_gone
from support.waiting import TIMEOUT_S, until

NINE = "timestamp,ip,model,count,queue,compute_input,compute_infer,compute_output,request"
PLAIN: dict[str, tuple[list[int], dict[str, object]]] = {"m": ([1, 10, 2], {})}
CHAIN = """
platform: "ensemble"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, 2 ] } ]
output [ { name: "Z" data_type: TYPE_FP32 dims: [ -1, 2 ] } ]
ensemble_scheduling { step [
  { model_name: "second" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "between" } },
  { model_name: "first" model_version: 1 input_map { key: "X" value: "between" } output_map { key: "Y" value: "Z" } }
] }
"""

# A busy machine is slow at ending a process too.
watch = partial(ServerMonitor, join_timeout=TIMEOUT_S)


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "first", times())
    add_model(repository, "second", times(), versions=(1, 3), config="version_policy: { all {} }")
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(CHAIN)
    with serve(repository, server_args=LOOPBACK, wait=True) as started:
        yield started


def ask(instance: Instance, model: str, times_: int = 1) -> None:
    tensor = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    for _ in range(times_):
        body = json.dumps({"inputs": [tensor]}).encode()
        with urlopen(Request(f"http://{instance.http}/v2/models/{model}/infer", body), timeout=TIMEOUT_S) as answer:
            assert answer.status == 200


def test_what_a_server_did_while_the_block_ran_is_in_the_file(instance: Instance, tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    ask(instance, "first", 3)
    with watch("first", "localhost", file, model_version=1, name="monitor") as monitor:
        ask(instance, "first", 5)
        row = next(monitor)
    rows = read_rows(file)
    assert file.read_text().splitlines()[0] == NINE
    assert not file.read_text().endswith("\n")
    assert rows[0] == row
    assert {(row.ip, row.model) for row in rows} == {("localhost", "first")}
    assert sum(row.count for row in rows) == 5
    assert all(row.durations_us["request"] >= row.durations_us["compute_infer"] > 0 for row in rows)


def test_an_ensemble_is_its_steps_in_their_order_each_with_its_version(instance: Instance, tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    monitor = watch("chain", ["localhost"], file, model_version=1, columns=["version"])
    assert (monitor.models, monitor.versions) == (["second", "first"], [3, 1])
    with monitor:
        ask(instance, "chain", 2)
        ask(instance, "second")
    rows = read_rows(file)
    assert rows[0].model == "second"
    assert {row.model: row.version for row in rows} == {"second": 3, "first": 1}
    assert sum(row.count for row in rows if row.model == "first") == 2


def test_an_ensemble_has_rows_of_its_own_where_they_are_wanted(instance: Instance, tmp_path: Path) -> None:
    monitor = watch("chain", "localhost", tmp_path / "stats.csv", include_ensemble=True)
    assert (monitor.models, monitor.versions) == (["chain", "second", "first"], [1, 3, 1])


def test_the_latest_version_is_watched_where_none_is_named(tmp_path: Path) -> None:
    with FakeMonitored(PLAIN) as server:
        monitor = watch("m", f"127.0.0.1:{server.port}", tmp_path / "stats.csv", http_port=server.port)
    assert (monitor.models, monitor.versions) == (["m"], [10])


def test_a_version_or_a_model_that_is_not_served_is_a_value_error(instance: Instance, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no version 7 that is served: there is 1"):
        watch("first", "localhost", tmp_path / "stats.csv", model_version=7)
    with pytest.raises(MonitorError, match="third"):
        watch("third", "localhost", tmp_path / "stats.csv")


def test_a_server_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    port = int(unused_address().rpartition(":")[2])
    with pytest.raises(TransportError, match="does not answer"):
        watch("m", "127.0.0.1", tmp_path / "stats.csv", http_port=port, grpc_port=port)


def step(model: str, version: int) -> dict[str, object]:
    return {"model_name": model, "model_version": version}


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([step("m", -1), step("n", 1)], "has m version 10, n version 1"),
        ([step("m", 3)], "has m version 3"),
    ],
)
def test_servers_that_serve_something_else_are_refused_with_what_each_has(
    tmp_path: Path, steps: list[dict[str, object]], message: str
) -> None:
    def models(*of_ensemble: dict[str, object]) -> dict[str, tuple[list[int], dict[str, object]]]:
        return {"m": ([3, 10], {}), "n": ([1], {}), "e": ([1], {"ensemble_scheduling": {"step": list(of_ensemble)}})}

    with FakeMonitored(models(step("m", -1))) as one, FakeMonitored(models(*steps), "127.0.0.2", one.port) as two:
        with pytest.raises(ValueError, match=f"127.0.0.1 has m version 10, 127.0.0.2 {message}$"):
            watch("e", ["127.0.0.1", "127.0.0.2"], tmp_path / "stats.csv", http_port=one.port)
        two.models = one.models
        monitor = watch("e", ["127.0.0.1", "127.0.0.2"], tmp_path / "stats.csv", http_port=one.port)
    assert (monitor.models, monitor.versions) == (["m"], [10])


def test_a_server_that_lacks_the_version_is_refused_with_what_it_has(tmp_path: Path) -> None:
    with (
        FakeMonitored({"m": ([3], {})}) as server,
        pytest.raises(ValueError, match=r"m has no version 10 .* there is 3"),
    ):
        watch("m", "127.0.0.1", tmp_path / "stats.csv", model_version=10, http_port=server.port)


def test_several_servers_are_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    with FakeMonitored(PLAIN) as one, FakeMonitored(PLAIN) as two:
        ips = [f"127.0.0.1:{server.port}" for server in (one, two)]
        one.metrics, two.metrics = counters("m", 1, 1, 10), counters("m", 2, 2, 10)
        with watch("m", ips, file, http_port=one.port, max_request_rate=50):
            one.metrics, two.metrics = counters("m", 2, 11, 10), counters("m", 5, 32, 10)
    found = sorted((row.ip, row.count, row.durations_us["queue"]) for row in read_rows(file))
    assert found == sorted([(ips[0], 1, 10), (ips[1], 3, 30)])


def test_a_server_that_began_again_gives_no_negative_row(tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    with FakeMonitored(PLAIN) as server:
        server.metrics = counters("m", 100, 1000, 10)
        with watch("m", f"127.0.0.1:{server.port}", file, http_port=server.port, max_request_rate=50) as monitor:
            server.metrics = counters("m", 101, 1010, 10)
            assert next(monitor).count == 1
            server.status = 503
            server.wait_for_scrape()
            server.metrics, server.status = counters("m", 4, 40, 10), 200
            assert next(monitor).count == 4
    assert [(row.count, row.durations_us["queue"]) for row in read_rows(file)] == [(1, 10), (4, 40)]


def test_a_silent_server_is_logged_and_polled_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        FakeMonitored(PLAIN) as server,
        watch("m", f"127.0.0.1:{server.port}", tmp_path / "stats.csv", http_port=server.port, max_request_rate=50),
    ):
        server.status = 500
        until(lambda: "HTTP status 500; the monitor keeps trying" in caplog.text)
        server.status = 200
        until(lambda: "answers again" in caplog.text)


def test_a_server_that_never_answered_is_an_error_when_the_block_ends(tmp_path: Path) -> None:
    with FakeMonitored(PLAIN) as server:
        server.status = 500
        with (
            pytest.raises(MonitorError, match="have never answered"),
            watch("m", f"127.0.0.1:{server.port}", tmp_path / "stats.csv", http_port=server.port),
        ):
            pass


def test_a_file_that_cannot_be_written_is_an_error_before_the_block(instance: Instance, tmp_path: Path) -> None:
    with (
        pytest.raises(MonitorError, match="No such file or directory"),
        watch("first", "localhost", tmp_path / "none" / "stats.csv"),
    ):
        pytest.fail("the block was entered")


def test_a_monitor_that_is_killed_is_an_error_when_the_block_ends(instance: Instance, tmp_path: Path) -> None:
    with (
        pytest.raises(MonitorError, match="ended before it was stopped"),
        watch("first", "localhost", tmp_path / "stats.csv") as monitor,
    ):
        assert monitor.pid is not None
        os.kill(monitor.pid, signal.SIGKILL)
        monitor.join()


def test_an_error_of_the_block_is_the_one_that_is_raised(instance: Instance, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), watch("first", "localhost", tmp_path / "stats.csv") as monitor:
        assert monitor.pid is not None
        os.kill(monitor.pid, signal.SIGKILL)
        1 / 0  # noqa: B018


def test_a_column_of_gpus_is_there_only_where_there_is_a_gpu(tmp_path: Path) -> None:
    columns = ["pending", "gpu_utilization"]
    with FakeMonitored(PLAIN) as server:
        for gpu, expected in (("", ",pending"), ('nv_gpu_utilization{gpu_uuid="x"} 0.5\n', ",pending,gpu_utilization")):
            file = tmp_path / f"stats{len(gpu)}.csv"
            server.metrics = gpu + counters("m", 1, 1, 10)
            ip = f"127.0.0.1:{server.port}"
            with watch("m", ip, file, http_port=server.port, columns=columns, max_request_rate=50):
                server.metrics = gpu + counters("m", 2, 2, 10)
            assert file.read_text().splitlines()[0] == NINE + expected
            assert len(read_rows(file)) == 1


def test_a_monitor_is_over_when_it_is_stopped(instance: Instance, tmp_path: Path) -> None:
    with watch("first", "localhost", tmp_path / "stats.csv") as monitor:
        assert monitor.is_alive()
        pid = monitor.pid
        ask(instance, "first")
        assert sum(row.count for row in [next(monitor)]) >= 1
    assert pid is not None
    assert is_gone(pid)
    assert list(monitor) == []
    monitor.stop()
    with pytest.raises(ValueError, match="closed"):
        monitor.is_alive()


def test_a_monitor_says_what_held_the_work_up(instance: Instance, tmp_path: Path) -> None:
    with watch("first", "localhost", tmp_path / "stats.csv") as monitor:
        assert monitor.verdict().kind == "idle"
        ask(instance, "first", 3)
        next(monitor)
        assert monitor.verdict().kind in ("clients", "model")


def test_a_script_that_is_killed_leaves_no_monitor(instance: Instance, tmp_path: Path) -> None:
    script = (
        "import signal, sys\nfrom alipes.monitor import ServerMonitor\n"
        "with ServerMonitor('first', sys.argv[1], sys.argv[3], http_port=int(sys.argv[2])) as monitor:\n"
        "    print(monitor.pid, flush=True)\n    signal.pause()"
    )
    place = [instance.metrics, instance.http.rpartition(":")[2], str(tmp_path / "stats.csv")]
    with subprocess.Popen([sys.executable, "-c", script, *place], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    until(lambda: is_gone(pid), "the monitor outlived the script that started it")


@pytest.mark.parametrize(("ips", "rate"), [([], 10), ("localhost", 0)])
def test_what_cannot_be_watched_is_refused(ips: list[str], rate: float, tmp_path: Path) -> None:
    with pytest.raises(MonitorError):
        watch("first", ips, tmp_path / "stats.csv", max_request_rate=rate)


def test_a_monitor_can_be_looked_at(instance: Instance, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with watch("first", "localhost", tmp_path / "stats.csv", live=True) as monitor:
        ask(instance, "first", 3)
        next(monitor)
    assert "first" in capsys.readouterr().out


def test_the_command_line_watches_a_server_and_writes_a_record(instance: Instance, tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    command = [sys.executable, "-m", "alipes", "monitor", "--model=chain", f"--output={file}", "--columns=version"]
    ports = [f"--http-port={instance.http.rpartition(':')[2]}", f"--metrics-port={instance.metrics.rpartition(':')[2]}"]
    with subprocess.Popen([*command, *ports], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: file.exists() and file.read_text().startswith(NINE))
        ask(instance, "chain", 2)
        process.send_signal(signal.SIGINT)
        printed, error = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, error) == (0, "")
    assert "second" in printed
    assert {row.model for row in read_rows(file)} == {"second", "first"}


@pytest.mark.parametrize("flags", [["--metrics-port=1"], ["--http-port=1", "--model=m"], ["--columns=speed"]])
def test_the_command_line_says_what_cannot_be_watched(flags: list[str]) -> None:
    words = [sys.executable, "-m", "alipes", "monitor", "127.0.0.1", "--seconds=0", *flags]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_monitor_says_what_it_watches(instance: Instance, tmp_path: Path) -> None:
    monitor = watch("chain", "localhost", tmp_path / "stats.csv", max_request_rate=20)
    assert (monitor.ips, monitor.models, monitor.versions) == (["localhost"], ["second", "first"], [3, 1])
    assert monitor.max_request_rate == 20


def test_a_monitor_may_be_used_without_a_block(instance: Instance, tmp_path: Path) -> None:
    file = tmp_path / "stats.csv"
    monitor = watch("first", "localhost", file)
    monitor.start()
    ask(instance, "first", 2)
    monitor.stop()
    monitor.join(TIMEOUT_S)
    assert (monitor.stopped, monitor.is_alive(), monitor.exitcode) == (True, False, 0)
    monitor.close()
    assert sum(row.count for row in read_rows(file)) == 2


def test_a_monitor_that_the_script_terminates_is_no_error(instance: Instance, tmp_path: Path) -> None:
    with watch("first", "localhost", tmp_path / "stats.csv") as monitor:
        monitor.terminate()
        monitor.join(TIMEOUT_S)
        assert (monitor.stopped, monitor.is_alive(), monitor.exitcode) == (True, False, -signal.SIGTERM)
    assert list(monitor) == []


def test_a_script_may_look_for_itself(instance: Instance, tmp_path: Path) -> None:
    class Pool:
        """Asks as a pool of `urllib3` does."""

        def __init__(self) -> None:
            self.data = b""

        def request(self, method: str, url: str) -> Pool:
            with urlopen(Request(url, method=method), timeout=TIMEOUT_S) as answer:
                self.data = answer.read()
            return self

    monitor = watch("chain", "localhost", tmp_path / "stats.csv")
    for http in (Pool(), None):
        tracker: dict[str, dict[str, int]] = {model: {} for model in monitor.models}
        assert monitor.parse_for_ip("localhost", http, tracker) == []
        ask(instance, "first", 2)
        (line,) = monitor.parse_for_ip("localhost", http, tracker)
        assert line.split(",")[1:4] == ["localhost", "first", "2"]
        assert len(line.split(",")) == len(NINE.split(","))
        assert monitor.parse_for_ip("localhost", http, tracker) == []
    with pytest.raises(ValueError, match="the tracker lacks model second"):
        monitor.parse_for_ip("localhost", None, {})
    with pytest.raises(ValueError, match=r"192\.0\.2\.1 is not one of the monitored servers"):
        monitor.parse_for_ip("192.0.2.1", None, tracker)
