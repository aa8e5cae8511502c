"""A real cluster of Ray on this machine, whose nodes can leave, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLES = {"RAY_AUTH_MODE": "disabled"}
"""What processes find in their environment that connect to it."""

# The head runs no tasks, so that any node that does may leave.
_PROGRAM = """
from ray.cluster_utils import Cluster
if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    print("address", cluster.address, flush=True)
    input()
    cluster.shutdown()
"""


@contextmanager
def ray_cluster(folder: Path) -> Iterator[str]:
    """The address of a cluster with two nodes of one CPU beside its head, for as long as the block runs."""
    (folder / "cluster.py").write_text(_PROGRAM)
    process = subprocess.Popen(
        [sys.executable, folder / "cluster.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=os.environ | VARIABLES,
    )
    assert process.stdout is not None
    try:
        # Ray prints there, too.
        found = next((match for line in process.stdout if (match := re.match(r"address (\S+)", line))), None)
        assert found is not None, "the cluster has ended"
        yield found[1]
    finally:
        process.communicate("\n")
