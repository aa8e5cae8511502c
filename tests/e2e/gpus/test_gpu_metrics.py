"""The `nv_gpu_*` metrics of a server, with a stub of NVIDIA's management library and without it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import pytest
from alipes import _core
from alipes.monitor import ServerMonitor, read_rows
from support.command import alipes
from support.double import assert_serves
from support.gpus import StubGpu, StubMachine, has_real_gpu
from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

FIRST = StubGpu("GPU-11aa0000-0000-0000-0000-000000000000")
SECOND = StubGpu("GPU-22bb0000-0000-0000-0000-000000000000", utilization_percent=100, memory_used=5 << 30)
OFTEN = "--metrics-interval-ms=10"
FAMILIES = """\
# HELP nv_gpu_utilization GPU utilization rate [0.0 - 1.0)
# TYPE nv_gpu_utilization gauge
# HELP nv_gpu_memory_total_bytes GPU total memory, in bytes
# TYPE nv_gpu_memory_total_bytes gauge
# HELP nv_gpu_memory_used_bytes GPU used memory, in bytes
# TYPE nv_gpu_memory_used_bytes gauge
# HELP nv_gpu_power_usage GPU power usage in watts
# TYPE nv_gpu_power_usage gauge
# HELP nv_gpu_power_limit GPU power management limit in watts
# TYPE nv_gpu_power_limit gauge
# HELP nv_energy_consumption GPU energy consumption in joules since the Triton Server started
# TYPE nv_energy_consumption counter
"""


def page(server: ServerProcess) -> str:
    with urlopen(f"http://{server.metrics}/metrics", timeout=TIMEOUT_S) as response:
        text: str = response.read().decode()
    return text


def shown(server: ServerProcess) -> dict[str, dict[str, float]]:
    """The value of each metric of a GPU, by the GPU and the metric's name."""
    found: dict[str, dict[str, float]] = {}
    for name, uuid, value in re.findall(r'^(\w+)\{gpu_uuid="([^"]+)"\} (\S+)$', page(server), re.MULTILINE):
        found.setdefault(uuid, {})[name] = float(value)
    return found


def energy(server: ServerProcess, uuid: str) -> float:
    return shown(server)[uuid]["nv_energy_consumption"]


def environment(machine: StubMachine, visible: str = "0,1") -> dict[str, str]:
    return {**machine.environment, "CUDA_VISIBLE_DEVICES": visible}


@pytest.fixture
def machine(tmp_path: Path) -> StubMachine:
    return StubMachine(tmp_path / "gpus", FIRST, SECOND)


def test_each_gpu_has_the_six_metrics_of_triton(machine: StubMachine, repository: Path, serve: Serve) -> None:
    server = serve(repository, OFTEN, environment=environment(machine))
    until(lambda: len(shown(server)) == 2)
    assert shown(server)[FIRST.uuid] == {
        "nv_gpu_utilization": 0.25,
        "nv_gpu_memory_total_bytes": 80 << 30,
        "nv_gpu_memory_used_bytes": 3 << 30,
        "nv_gpu_power_usage": 120.5,
        "nv_gpu_power_limit": 700,
        "nv_energy_consumption": 0,
    }
    assert shown(server)[SECOND.uuid]["nv_gpu_utilization"] == 1
    text = page(server)
    lines = [line for line in text.splitlines() if line.startswith("#") and re.search("nv_gpu|nv_energy", line)]
    assert lines == FAMILIES.splitlines()


def test_metrics_follow_the_gpus(machine: StubMachine, repository: Path, serve: Serve) -> None:
    server = serve(repository, OFTEN, environment=environment(machine))
    until(lambda: len(shown(server)) == 2)
    machine.write(replace(FIRST, utilization_percent=50, energy=7_750), SECOND)
    until(lambda: shown(server)[FIRST.uuid]["nv_gpu_utilization"] == 0.5)
    until(lambda: energy(server, FIRST.uuid) == 2.5)


def test_what_a_gpu_does_not_tell_is_left_out(machine: StubMachine, repository: Path, serve: Serve) -> None:
    machine.write(replace(FIRST, utilization_percent=None, power=None, power_limit=None, energy=None))
    server = serve(repository, OFTEN, environment=environment(machine))
    until(lambda: shown(server))
    assert shown(server) == {FIRST.uuid: {"nv_gpu_memory_total_bytes": 80 << 30, "nv_gpu_memory_used_bytes": 3 << 30}}
    assert "# TYPE nv_gpu_utilization" not in page(server)


def test_a_gpu_that_falls_off_the_bus_costs_its_lines_alone(
    machine: StubMachine, repository: Path, serve: Serve
) -> None:
    server = serve(repository, OFTEN, environment=environment(machine))
    until(lambda: len(shown(server)) == 2)
    machine.write(replace(FIRST, state="lost"), SECOND)
    until(lambda: list(shown(server)) == [SECOND.uuid])
    machine.write(FIRST, SECOND)
    until(lambda: len(shown(server)) == 2)


def test_a_driver_that_does_not_answer_holds_up_nothing(machine: StubMachine, repository: Path, serve: Serve) -> None:
    machine.write(replace(FIRST, state="stuck"), SECOND)
    server = serve(repository, OFTEN, environment=environment(machine))
    until(lambda: list(shown(server)) == [SECOND.uuid])
    assert "nv_cpu_utilization" in page(server)
    assert server.stop() == 0


def test_a_driver_that_is_gone_leaves_the_page(machine: StubMachine, repository: Path, serve: Serve) -> None:
    server = serve(repository, OFTEN, environment=environment(machine))
    until(lambda: len(shown(server)) == 2)
    machine.write()
    until(lambda: shown(server) == {})
    assert "nv_cpu_utilization" in page(server)


def test_only_visible_gpus_are_shown(machine: StubMachine, repository: Path, serve: Serve) -> None:
    server = serve(repository, OFTEN, environment=environment(machine, "GPU-22"))
    until(lambda: shown(server))
    assert list(shown(server)) == [SECOND.uuid]


def test_metrics_of_gpus_can_be_turned_off(machine: StubMachine, repository: Path, serve: Serve) -> None:
    server = serve(repository, "--allow-gpu-metrics=false", environment=environment(machine))
    assert "gpu" not in page(server)
    # Nor is the driver loaded.
    assert "libnvidia-ml" not in Path(f"/proc/{server.process.pid}/maps").read_text()


@pytest.mark.skipif(has_real_gpu(), reason="this machine has a GPU")
def test_without_a_gpu_the_page_and_the_log_name_none(repository: Path, serve: Serve) -> None:
    server = serve(repository, "--allow-gpu-metrics=true", OFTEN)
    assert "gpu" not in page(server)
    assert "gpu" not in server.output.replace(str(repository), "").lower()


@pytest.fixture
def double(machine: StubMachine, repository: Path, serve: Serve) -> ServerProcess:
    """A server of the model `double` whose metrics show both GPUs."""
    add_model(repository, "double", times())
    server = serve(repository, OFTEN, environment=environment(machine))
    until(lambda: len(shown(server)) == 2)
    return server


def test_a_monitor_records_the_gpus(double: ServerProcess, tmp_path: Path) -> None:
    ports = {name: int(getattr(double, name).rpartition(":")[2]) for name in ("http", "metrics")}
    monitor = ServerMonitor(
        "double",
        "127.0.0.1",
        tmp_path / "record.csv",
        http_port=ports["http"],
        metrics_port=ports["metrics"],
        columns=["gpu_utilization", "gpu_memory_used_bytes"],
        join_timeout=TIMEOUT_S,
    )
    with monitor, closing(HTTPConnection(double.http, timeout=TIMEOUT_S)) as connection:
        assert_serves(connection)
        next(monitor)
    rows = read_rows(tmp_path / "record.csv")
    assert {(row.extras["gpu_utilization"], row.extras["gpu_memory_used_bytes"]) for row in rows} == {(0.625, 4 << 30)}


def test_perf_analyzer_collects_the_gpus(double: ServerProcess, tmp_path: Path) -> None:
    words = ("-m", "double", "-u", double.http, "-p", "200", "-s", "1000000", "--shape", "X:1,2")
    collect = ("--collect-metrics", "--metrics-url", f"{double.metrics}/metrics")
    done = alipes("perf_analyzer", *words, *collect, "--verbose-csv", "-f", str(tmp_path / "perf.csv"))
    assert (done.code, done.err) == (0, "")
    for uuid, percent in ((FIRST.uuid, "25"), (SECOND.uuid, "100")):
        assert re.search(rf"{uuid} : {percent}(\.0*)?%", done.out), done.out
    with (tmp_path / "perf.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["Avg GPU Utilization"] == f"{FIRST.uuid}:0.25;{SECOND.uuid}:1;"


@pytest.mark.gpu
def test_a_real_gpu_is_measured(repository: Path, serve: Serve) -> None:
    server = serve(repository, OFTEN)
    wanted = {gpu.uuid: gpu.memory_total_bytes for gpu in _core.gpus()}
    until(lambda: set(shown(server)) == set(wanted))
    before = shown(server)
    for uuid, values in before.items():
        assert 0 <= values.get("nv_gpu_utilization", 0) <= 1
        assert values["nv_gpu_memory_total_bytes"] == wanted[uuid]
        assert 0 <= values["nv_gpu_memory_used_bytes"] <= values["nv_gpu_memory_total_bytes"]
        # Watts, not milliwatts.
        assert 1 < values.get("nv_gpu_power_usage", 10) < 5_000
        assert 1 < values.get("nv_gpu_power_limit", 10) < 5_000
    if all("nv_energy_consumption" in values for values in before.values()):
        until(lambda: all(energy(server, uuid) > values["nv_energy_consumption"] for uuid, values in before.items()))
