"""Commands named as HTCondor's, which run a submit file on this machine: a double, since no pool is to be had."""

from __future__ import annotations

import sys
from pathlib import Path

_HEAD = f"""#!{sys.executable}
import os, pathlib, re, shlex, signal, subprocess, sys
pool = pathlib.Path(__file__).parent / "pool"
pool.mkdir(exist_ok=True)
"""

_SUBMIT = """
text = pathlib.Path(sys.argv[2]).read_text()
head, _, queue = text.partition("queue shard from (")
commands = dict(line.split(" = ", 1) for line in head.splitlines() if " = " in line)
cluster = len(list(pool.iterdir())) + 1
(pool / str(cluster)).mkdir()
for number, shard in enumerate(queue.split()[:-1]):
    words = shlex.split(commands["arguments"].strip('"').replace("$(shard)", shard))
    error = open(commands["error"].replace("$(shard)", shard), "wb")
    process = subprocess.Popen(
        [commands["executable"], *words], stdout=subprocess.DEVNULL, stderr=error, start_new_session=True
    )
    (pool / str(cluster) / str(process.pid)).touch()
print(f"{cluster}.0 - {cluster}.{number}")
"""

_LIVING = """
def living(cluster):
    for file in (pool / cluster).iterdir():
        try:
            state = pathlib.Path("/proc", file.name, "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            yield int(file.name)
"""

_QUERY = """
for _ in living(sys.argv[1]):
    print("5 no such machine" if (pool.parent / "held").exists() else "2 undefined")
"""

_REMOVE = """
for pid in living(sys.argv[1]):
    os.kill(pid, signal.SIGTERM)
"""


def add_condor_commands(folder: Path) -> None:
    """Writes `condor_submit`, `condor_q` and `condor_rm`. A file `held` in the folder has all jobs held."""
    folder.mkdir()
    for name, text in (
        ("condor_submit", _SUBMIT),
        ("condor_q", _LIVING + _QUERY),
        ("condor_rm", _LIVING + _REMOVE),
    ):
        (folder / name).write_text(_HEAD + text)
        (folder / name).chmod(0o755)
