"""The script of an array job runs one client for each task, and queues again those that were asked to stop."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from alipes.batch.executors.slurm import slurm_script
from alipes.batch.folder import RunFolder, Start

START = Start(3, ["grpc://a:8001"], 2)


def test_options_of_sbatch_stand_in_front_of_the_client(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "out put")
    text = slurm_script(folder, START, range(4), {"partition": "gpu", "time": "1:00:00"}, tmp_path / "log")
    lines = text.splitlines()
    assert lines[0] == "#!/bin/bash"
    for line in ("--array=0-3", "--requeue", "--signal=B:TERM@60", "--partition=gpu", "--time=1:00:00"):
        assert f"#SBATCH {line}" in lines
    (client,) = (line for line in lines if "alipes.batch.worker" in line)
    assert client.endswith(f"-m alipes.batch.worker '{tmp_path}/out put' $SLURM_ARRAY_TASK_ID --start 3 --parent $$ &")


@pytest.mark.parametrize(("code", "again"), [(0, False), (1, False), (85, True)])
def test_a_client_that_stops_in_order_is_queued_again(tmp_path: Path, code: int, again: bool) -> None:
    text = slurm_script(RunFolder(tmp_path), START, range(1), {}, tmp_path / "log")
    script = tmp_path / "script"
    lines = [f"sh -c 'exit {code}' &" if "alipes.batch.worker" in line else line for line in text.splitlines()]
    script.write_text("\n".join(lines))
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/queued\n')
    (tmp_path / "scontrol").chmod(0o755)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "5"}
    done = subprocess.run(["bash", script], env=variables, check=False)
    assert done.returncode == code
    assert (tmp_path / "queued").exists() == again
    assert not again or (tmp_path / "queued").read_text() == "requeue 7_5\n"
