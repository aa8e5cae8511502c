"""Scripts of hermes name the image of a container: our own server takes its place, unless they are told otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from alipes.client import Client
from alipes.compat.serve import image_required
from alipes.errors import ServeError
from support.containers import LOOPBACK, stand_in
from support.models import add_model, times
from support.waiting import TIMEOUT_S

SCRIPT = """\
import sys
from hermes.aeriel.serve import serve

for image in sys.argv[2].split(","):
    with serve("models", image, server_args=sys.argv[3:]) as instance:
        instance.wait()
        print(instance.status())
"""


@pytest.fixture
def models(repository: Path) -> Path:
    add_model(repository, "times", times())
    return repository


def run(models: Path, images: str, *, path: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """The script in the folder that holds the models, with no engine of containers on its PATH."""
    (models.parent / "script.py").write_text(SCRIPT.replace('"models"', "sys.argv[1]"))
    command = [sys.executable, "-m", "alipes.compat", "hermes", "script.py", str(models), images, *LOOPBACK]
    environment = os.environ | {"PATH": path} | variables
    return subprocess.run(
        command, env=environment, cwd=models.parent, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def test_an_image_is_replaced_by_our_server_with_one_warning(models: Path) -> None:
    done = run(models, "tritonserver.sif,tritonserver.sif,/cvmfs/other.sif")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ready\n" * 3
    assert done.stderr.splitlines() == [
        f"the container image {image} is not used: alipes serves with its own server; "
        "ALIPES_SERVE_IMAGE=require runs the image"
        for image in ("tritonserver.sif", "/cvmfs/other.sif")
    ]


def test_a_required_image_runs(models: Path, tmp_path: Path) -> None:
    calls = stand_in(tmp_path / "bin", "apptainer")
    image = tmp_path / "image.sif"
    image.touch()
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    done = run(models, str(image), path=path, ALIPES_SERVE_IMAGE="require")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")
    assert str(image) in calls.read_text()


def test_a_required_image_that_is_missing_is_an_error(models: Path) -> None:
    done = run(models, "none.sif", ALIPES_SERVE_IMAGE="require")
    assert done.returncode == 1
    assert "ServeError: could not find the container image 'none.sif'" in done.stderr


def test_the_variable_has_two_values() -> None:
    assert not image_required({})
    assert not image_required({"ALIPES_SERVE_IMAGE": " Ignore"})
    assert image_required({"ALIPES_SERVE_IMAGE": "require "})
    with pytest.raises(ServeError, match=r"ALIPES_SERVE_IMAGE is 'yes': expected ignore or require"):
        image_required({"ALIPES_SERVE_IMAGE": "yes"})


def test_free_ports_are_known_by_their_numbers(models: Path) -> None:
    from alipes.compat.serve import serve

    addresses = [flag for flag in LOOPBACK if "address" in flag]
    with serve(models, server_args=addresses, free_ports=True) as instance:
        instance.wait()
        assert not {8000, 8001, 8002} & {instance.http_port, instance.grpc_port, instance.metrics_port}
        with Client(f"grpc://127.0.0.1:{instance.grpc_port}") as client:
            assert client.metadata("times")["name"] == "times"
