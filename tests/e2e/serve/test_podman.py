"""`serve(image=...)` with a real container engine: the command line is one that it takes, and nothing is left of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from alipes.client import Client
from alipes.errors import ServeError
from alipes.serve import serve
from support.models import add_model, times
from support.podman import IMAGE, Missing, Podman, podman
from support.processes import is_gone
from support.waiting import TIMEOUT_S, until

pytestmark = pytest.mark.proof

LOCAL = [f"--{endpoint}-address=127.0.0.1" for endpoint in ("http", "grpc", "metrics")]


@pytest.fixture(scope="module")
def made() -> Iterator[Podman]:
    try:
        with podman() as engine:
            yield engine
    except Missing as error:
        pytest.skip(f"podman cannot run a container here: {error}")


@pytest.fixture
def engine(made: Podman, monkeypatch: pytest.MonkeyPatch) -> Podman:
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def models(repository: Path) -> Path:
    add_model(repository, "times", times())
    return repository


def names(engine: Podman) -> list[str]:
    return engine("ps", "--all", "--format", "{{.Names}}").split()


def test_a_container_is_there_for_the_block_and_nothing_of_it_after(engine: Podman, models: Path) -> None:
    with serve(models, image=IMAGE, runtime="podman", name="in-the-block", server_args=LOCAL) as instance:
        instance.wait(timeout=TIMEOUT_S)
        assert names(engine) == ["in-the-block"]
        assert "Started GRPCInferenceService" in instance.log
        with Client(instance.grpc) as client:
            doubled = client.infer("times", np.array([[1, 2]], np.float32))
        assert np.array_equal(doubled, np.array([[2, 4]], np.float32))
        pid = instance.pid
    assert names(engine) == []
    assert is_gone(pid)


def test_a_killed_container_counts_as_ended(engine: Podman, models: Path) -> None:
    with serve(models, image=IMAGE, runtime="podman", name="killed", server_args=LOCAL, wait=True) as instance:
        engine("kill", "killed")
        until(lambda: instance.status() == "ended", "the end was not noticed")
        with pytest.raises(ServeError, match="ended"):
            instance.wait(timeout=TIMEOUT_S)
    assert names(engine) == []


def test_a_script_that_is_killed_leaves_no_container(engine: Podman, models: Path) -> None:
    code = (
        "from alipes.serve import serve\n"
        f"run = dict(image={IMAGE!r}, runtime='podman', name='orphan', server_args={LOCAL!r})\n"
        f"with serve({str(models)!r}, wait=True, **run):\n"
        "    print('ready', flush=True)\n    input()\n"
    )
    script = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with script:
        assert script.stdout is not None
        assert script.stdout.readline() == b"ready\n"
        assert names(engine) == ["orphan"]
        script.send_signal(signal.SIGKILL)
    until(lambda: names(engine) == [], "the container is still there")


def test_a_missing_image_is_reported_by_the_engine(engine: Podman, models: Path) -> None:
    with (
        pytest.raises(ServeError, match="localhost/nobody"),
        serve(models, image="localhost/nobody:1", runtime="podman", server_args=LOCAL) as instance,
    ):
        instance.wait(timeout=TIMEOUT_S)
    assert names(engine) == []
