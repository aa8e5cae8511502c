"""What a server and its workers take of the machine, seen from outside."""

from __future__ import annotations

import psutil

from support.soak.record import Sample


def probe(pid: int) -> Sample:
    """The columns that the system knows, of a server and of all processes that it has started.

    Raises:
        psutil.NoSuchProcess: If the server has ended.
    """
    server = psutil.Process(pid)
    own = _of(server)
    workers = [found for worker in server.children(recursive=True) if (found := _if_there(worker))]
    columns = [sum(column) for column in zip(own, *workers, strict=True)]
    return {
        "server_bytes": own[0],
        "all_bytes": columns[0],
        "descriptors": columns[1],
        "threads": columns[2],
        "processes": 1 + len(workers),
    }


def _of(process: psutil.Process) -> tuple[int, int, int]:
    """Resident memory, descriptors, threads."""
    with process.oneshot():
        return process.memory_info().rss, process.num_fds(), process.num_threads()


def _if_there(process: psutil.Process) -> tuple[int, int, int] | None:
    """The same; nothing of a process that has ended and is waited for, which only counts."""
    try:
        return _of(process)
    except psutil.ZombieProcess:
        return 0, 0, 0
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
