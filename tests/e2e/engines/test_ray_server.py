"""A server in an actor of Ray: whatever is killed in the middle, each task has its answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from support.batch_runs import HELD, add_picky, await_held

pytestmark = [pytest.mark.proof, pytest.mark.extra("ray")]

# What the cluster needs, and 40 tasks, one of which has the row that is held.
TASKS = f"""
import json, sys
import numpy as np, ray
from alipes.ray import Server

if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="error")
    with Server(sys.argv[1], num_cpus=0.5, host="127.0.0.1") as server:

        @ray.remote(num_cpus=0.5)
        def ask(number):
            return float(server.infer("picky", np.array([[number, 1]], np.float32))[0, 0])

        first = server.grpc_url
        numbers = [*map(float, range(20)), {HELD}, *map(float, range(21, 40))]
        answers = ray.get([ask.remote(number) for number in numbers])
        with server.client() as client:
            models = [model.name for model in client.models()]
        print(json.dumps([[number, answer] for number, answer in zip(numbers, answers)]))
        print(json.dumps([first, server.grpc_url, models]))
"""


@contextmanager
def program(text: str, folder: Path, *words: object, notes: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A program as a process."""
    (folder / "program.py").write_text(text)
    process = subprocess.Popen(
        [sys.executable, folder / "program.py", *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
        env=os.environ | {"RAY_AUTH_MODE": "disabled", "NOTES": str(notes)},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("killed", ["server", "actor"])
def test_tasks_are_answered_though_the_actor_is_killed(repository: Path, tmp_path: Path, killed: str) -> None:
    add_picky(repository)
    notes = tmp_path / "notes"
    notes.mkdir()
    with program(TASKS, tmp_path, repository, notes=notes) as process:
        server = psutil.Process(await_held(notes))
        actor = server.parent()
        assert actor is not None
        os.kill(server.pid if killed == "server" else actor.pid, signal.SIGKILL)
        psutil.wait_procs([server], timeout=60)
        (notes / "go").touch()
        out, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    # Ray itself prints there, too, of processes that were lost.
    answers, facts = (json.loads(line) for line in out.splitlines() if line.startswith("["))
    numbers = [*map(float, range(20)), HELD, *map(float, range(21, 40))]
    assert answers == [[number, 2 * number] for number in numbers]
    first, last, models = facts
    assert first != last
    assert models == ["picky"]


MISTAKE = """
import sys
import ray
from alipes.errors import ServeError
from alipes.ray import Server

if __name__ == "__main__":
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        Server(sys.argv[1], host="127.0.0.1")
    except ServeError as error:
        print(error)
"""


def test_a_server_that_ray_cannot_start_says_why(repository: Path, tmp_path: Path) -> None:
    add_picky(repository)
    (repository / "picky" / "config.pbtxt").write_text("max_batch_sise: 8")
    with program(MISTAKE, tmp_path, repository) as process:
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "max_batch_sise" in out
