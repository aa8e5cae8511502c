"""The memory that a process may use is that of its control groups, and never more than the machine has."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from alipes.config.memory_limit import memory_limit_bytes

LIMIT = 1 << 20
MACHINE = psutil.virtual_memory().total


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("text", "limit"), [(f"{LIMIT}\n", LIMIT), ("max\n", MACHINE), ("9223372036854771712\n", MACHINE)]
)
@pytest.mark.parametrize(
    ("group", "file"),
    [
        ("0::/\n", "sys/fs/cgroup/memory.max"),
        ("0::/system.slice/alipes.service\n", "sys/fs/cgroup/system.slice/alipes.service/memory.max"),
        ("0::/system.slice/alipes.service\n", "sys/fs/cgroup/system.slice/memory.max"),
        ("0::/docker/0123\n", "sys/fs/cgroup/memory.max"),
        ("0::/../outside\n", "sys/fs/cgroup/memory.max"),
        ("4:memory:/jobs/7\n0::/\n", "sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes"),
        ("4:memory:/jobs/7\n0::/\n", "sys/fs/cgroup/memory/jobs/memory.limit_in_bytes"),
        ("4:cpu,memory:/docker/0123\n", "sys/fs/cgroup/memory/memory.limit_in_bytes"),
        ("4:memory:/jobs\n0::/jobs:with:colons\n", "sys/fs/cgroup/unified/jobs:with:colons/memory.max"),
    ],
)
def test_the_limit_of_each_group_above_the_process_holds(
    tmp_path: Path, group: str, file: str, text: str, limit: int
) -> None:
    write(tmp_path, {"proc/self/cgroup": group, file: text})
    assert memory_limit_bytes(tmp_path) == limit


def test_the_lowest_limit_counts(tmp_path: Path) -> None:
    limits = {"memory.max": 3 * LIMIT, "a/memory.max": LIMIT, "a/b/memory.max": 2 * LIMIT}
    files = {f"sys/fs/cgroup/{name}": str(limit) for name, limit in limits.items()}
    write(tmp_path, {"proc/self/cgroup": "0::/a/b\n", **files})
    assert memory_limit_bytes(tmp_path) == LIMIT


def test_limits_of_other_groups_and_other_controllers_do_not_count(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/other/memory.max": "1", "sys/fs/cgroup/cpu/memory.limit_in_bytes": "1"}
    write(tmp_path, {"proc/self/cgroup": "1:cpu:/\n0::/own\n", **files})
    assert memory_limit_bytes(tmp_path) == MACHINE


def test_without_control_groups_it_is_the_machines_memory(tmp_path: Path) -> None:
    assert memory_limit_bytes(tmp_path) == MACHINE
    write(tmp_path, {"proc/self/cgroup": "not a line of it\n"})
    assert memory_limit_bytes(tmp_path) == MACHINE
