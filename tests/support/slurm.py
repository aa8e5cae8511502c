"""A real Slurm of one node, as Debian has it: its daemons in a folder of the test, at free ports."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.ports import free_ports
from support.waiting import until

_PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch")


def skip_without_slurm() -> None:
    """Skips a test where Slurm is not installed, or its daemons may not be started."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    if missing := [name for name in _PROGRAMS if shutil.which(name, path=path) is None]:
        pytest.skip(f"{missing[0]} is not installed: tools/install-system-tools")
    if os.getuid():
        pytest.skip("Slurm's daemons need root")


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Slurm for as long as the block runs; the variables with which its commands find it."""
    host = socket.gethostname().partition(".")[0]
    control, node = free_ports(2)
    state = folder / "slurm"
    for name in ("state", "spool"):
        (state / name).mkdir(parents=True)
    munge = {name: state / f"munge.{name}" for name in ("key", "log", "pid", "seed", "socket")}
    munge["key"].touch(mode=0o600)
    munge["key"].write_bytes(secrets.token_bytes(128))
    lines = [
        "ClusterName=test",
        f"SlurmctldHost={host}(127.0.0.1)",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={munge['socket']}",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SlurmdParameters=config_overrides",
        "AccountingStorageType=accounting_storage/none",
        "JobAcctGatherType=jobacct_gather/none",
        "MpiDefault=none",
        f"StateSaveLocation={state / 'state'}",
        f"SlurmdSpoolDir={state / 'spool'}",
        f"SlurmctldPidFile={state / 'slurmctld.pid'}",
        f"SlurmdPidFile={state / 'slurmd.pid'}",
        f"SlurmctldPort={control}",
        f"SlurmdPort={node}",
        f"NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=2000 State=UNKNOWN",
        f"PartitionName=main Nodes={host} Default=YES State=UP",
    ]
    (state / "slurm.conf").write_text("\n".join(lines) + "\n")
    variables = {"SLURM_CONF": str(state / "slurm.conf")}
    with ExitStack() as stack:

        def begin(*command: str) -> None:
            log = stack.enter_context((state / f"{Path(command[0]).name}.log").open("wb"))
            process = subprocess.Popen(
                command, env=os.environ | variables, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)

        files = [f"--{name}{'' if name == 'socket' else '-file'}={path}" for name, path in munge.items()]
        # Forced, it may have its socket in a folder that is closed to other users.
        begin("/usr/sbin/munged", "--foreground", "--force", *files)
        until(munge["socket"].exists, "munged does not start")
        begin("/usr/sbin/slurmctld", "-D")
        begin("/usr/sbin/slurmd", "-D")
        until(lambda: "idle" in slurm_answer(variables, "sinfo", "--noheader", "--format", "%T"), "no node is idle")
        yield variables


def slurm_answer(variables: dict[str, str], *command: str) -> str:
    """What one of Slurm's commands prints."""
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False).stdout
