"""What a server has running and open, seen from outside."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import psutil

from support.server import ServerProcess
from support.waiting import until

_TRITONS_REGIONS = "triton_python_backend_shm_region_"


def workers_of(server: ServerProcess) -> list[psutil.Process]:
    """The worker processes that a server has now."""
    return [child for child in psutil.Process(server.process.pid).children() if is_worker(child)]


def is_worker(process: psutil.Process) -> bool:
    """Whether a process is a worker."""
    try:
        return any(part.endswith("worker/bootstrap.py") for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def memory_files(pid: int) -> list[str]:
    """The memory files that a process holds, by descriptor or by mapping; empty once it is gone."""
    found = set()
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            target = _target(descriptor)
            if target.startswith("/memfd:"):
                found.add(target)
        maps = Path(f"/proc/{pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it may go between two looks at it
        return []
    found.update(line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/memfd:" in line)
    return sorted(found)


def descriptors(pid: int) -> dict[int, str]:
    """The target of each open descriptor of a process."""
    return {int(entry.name): _target(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # closed meanwhile, or its process is gone
        return ""


def shared_memory_files() -> set[str]:
    """The files in /dev/shm, without those of a real Triton, whose regions stay when it is killed."""
    return {entry.name for entry in Path("/dev/shm").iterdir() if not entry.name.startswith(_TRITONS_REGIONS)}


def assert_none_stays(before: set[str]) -> None:
    """Asserts that no file which was created in /dev/shm since is left there, once the server is gone.

    Tests that run beside this one have files there too, but open ones; no process has those open that a server leaves.
    """
    came = shared_memory_files() - before
    until(lambda: not came & shared_memory_files() - _shared_memory_in_use(), f"left in /dev/shm: {sorted(came)}")


def _shared_memory_in_use() -> set[str]:
    """The names of the files in /dev/shm that some process has open or mapped."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is gone, or not ours to look at
            found.update(_target(descriptor) for descriptor in (process / "fd").iterdir())
            found.update(line.split(maxsplit=5)[-1] for line in (process / "maps").read_text().splitlines())
    return {name.removeprefix("/dev/shm/") for name in found if name.startswith("/dev/shm/")}


def metric(server: ServerProcess, name: str, **labels: str) -> float:
    """The sum of all samples of a metric with these labels; 0 where there is none."""
    with urlopen(f"http://{server.metrics}/metrics", timeout=60) as response:
        text = response.read().decode()
    lines = (line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} ")))
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    return sum(float(line.rpartition(" ")[2]) for line in lines if all(one in line for one in wanted))


def under_way(server: ServerProcess, model: str) -> int:
    """Requests that wait for a model in Python, and those that its workers hold."""
    with urlopen(f"http://{server.http}/v2/models/{model}/explain", timeout=60) as response:
        (explanation,) = json.load(response)["models"]
    return int(explanation["queue"]["waiting"]) + sum(int(worker["requests"]) for worker in explanation["workers"])


def shared_bytes(pid: int) -> int:
    """RAM behind the memory files that a process has open."""
    files = {}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if str(entry.readlink()).startswith("/memfd:"):
                status = entry.stat()
                files[status.st_ino] = status.st_blocks * 512
        except FileNotFoundError:  # closed meanwhile
            continue
    return sum(files.values())
