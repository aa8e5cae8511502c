"""`_core.gpus()`: which GPUs a process sees, with a stub of NVIDIA's management library and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alipes import _core
from support.gpus import StubGpu, StubMachine, has_real_gpu

FIRST = StubGpu("GPU-11aa0000-0000-0000-0000-000000000000", name="Stub A", compute_capability="8.6")
SECOND = StubGpu("GPU-11bb0000-0000-0000-0000-000000000000", name="Stub B", memory_total=24 << 30)

ASK = """
import json
from alipes import _core
fields = ("index", "uuid", "name", "memory_total_bytes", "compute_capability")
print(json.dumps([{field: getattr(gpu, field) for field in fields} for gpu in _core.gpus()]))
"""


def listed(machine: StubMachine | None, visible: str | None = None) -> list[dict[str, Any]]:
    """What a new process sees; `visible` is its `CUDA_VISIBLE_DEVICES`."""
    environment: Mapping[str, str] = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    environment = {**environment, **(machine.environment if machine else {})}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    answer: list[dict[str, Any]] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> StubMachine:
    return StubMachine(tmp_path_factory.mktemp("gpus"), FIRST, SECOND)


def test_each_gpu_is_listed_as_the_driver_describes_it(machine: StubMachine) -> None:
    assert listed(machine) == [
        {
            "index": 0,
            "uuid": FIRST.uuid,
            "name": "Stub A",
            "memory_total_bytes": 80 << 30,
            "compute_capability": [8, 6],
        },
        {
            "index": 1,
            "uuid": SECOND.uuid,
            "name": "Stub B",
            "memory_total_bytes": 24 << 30,
            "compute_capability": [9, 0],
        },
    ]


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        ("1,0", [SECOND, FIRST]),
        ("GPU-11bb", [SECOND]),
        ("1,7,0", [SECOND]),
        ("0,0", []),
        ("", []),
        ("-1", []),
    ],
)
def test_visible_devices_are_read_as_cuda_reads_them(machine: StubMachine, visible: str, seen: list[StubGpu]) -> None:
    found = [(gpu["index"], gpu["uuid"]) for gpu in listed(machine, visible)]
    assert found == [(index, gpu.uuid) for index, gpu in enumerate(seen)]


def test_a_gpu_that_does_not_answer_is_not_counted(tmp_path: Path) -> None:
    machine = StubMachine(tmp_path / "lost", StubGpu("GPU-lost", state="lost"), SECOND)
    assert [(gpu["index"], gpu["uuid"]) for gpu in listed(machine)] == [(0, SECOND.uuid)]


def test_memory_that_is_the_machines_own_is_no_number(tmp_path: Path) -> None:
    machine = StubMachine(tmp_path / "shared", StubGpu("GPU-shared", memory_total=None))
    assert [gpu["memory_total_bytes"] for gpu in listed(machine)] == [None]


def test_of_a_divided_gpu_one_part_is_seen(tmp_path: Path) -> None:
    part = StubGpu("MIG-1", state="part", name="Stub A MIG 1g.10gb", compute_capability="", memory_total=10 << 30)
    machine = StubMachine(tmp_path / "divided", FIRST, part, replace(part, uuid="MIG-2"), SECOND)
    one = {"index": 0, "name": part.name, "memory_total_bytes": 10 << 30, "compute_capability": [8, 6]}
    assert listed(machine) == [{**one, "uuid": "MIG-1"}]
    assert listed(machine, "MIG-2,MIG-1") == [{**one, "uuid": "MIG-2"}]
    assert [gpu["uuid"] for gpu in listed(machine, "1")] == [SECOND.uuid]


def test_a_script_knows_whether_its_server_has_a_gpu(machine: StubMachine) -> None:
    command = [sys.executable, "-c", "from alipes.serve.gpus import has_gpu; print(has_gpu())"]
    for visible, found in (("0", "True\n"), ("", "False\n")):
        environment = {**os.environ, **machine.environment, "CUDA_VISIBLE_DEVICES": visible}
        assert subprocess.check_output(command, env=environment, text=True) == found


def test_a_library_without_its_driver_gives_no_gpus(tmp_path: Path) -> None:
    machine = StubMachine(tmp_path / "none")
    (tmp_path / "none" / "gpus.tsv").unlink()
    assert listed(machine) == []


def test_a_file_that_is_no_library_gives_no_gpus(tmp_path: Path) -> None:
    machine = StubMachine(tmp_path / "broken", FIRST)
    (tmp_path / "broken" / "libnvidia-ml.so.1").write_bytes(b"no library")
    assert listed(machine) == []


@pytest.mark.skipif(has_real_gpu(), reason="this machine has a GPU")
def test_without_a_driver_there_are_no_gpus_and_no_message() -> None:
    assert listed(None) == []


def test_a_gpu_is_a_value_that_cannot_change() -> None:
    gpu = _core.Gpu(0, "GPU-1", "Stub", None, (9, 0))
    assert gpu == _core.Gpu(0, "GPU-1", "Stub", None, (9, 0)) != _core.Gpu(1, "GPU-1", "Stub", None, (9, 0))
    assert repr(gpu) == "Gpu(index=0, uuid='GPU-1', name='Stub')"
    with pytest.raises(AttributeError):
        gpu.index = 1  # type: ignore[misc]


@pytest.mark.gpu
def test_a_real_gpu_is_listed_with_what_it_has() -> None:
    for index, gpu in enumerate(_core.gpus()):
        assert (gpu.index, gpu.uuid[:4]) == (index, "GPU-")
        assert gpu.name
        assert gpu.compute_capability >= (3, 0)
