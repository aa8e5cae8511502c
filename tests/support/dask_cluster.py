"""A real cluster of Dask on this machine, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_PROGRAM = """
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        input()
"""


@contextmanager
def dask_cluster(folder: Path, variables: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a cluster with two workers of one thread, for as long as the block runs."""
    (folder / "cluster.py").write_text(_PROGRAM)
    process = subprocess.Popen(
        [sys.executable, folder / "cluster.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | dict(variables or {}),
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate("\n")
