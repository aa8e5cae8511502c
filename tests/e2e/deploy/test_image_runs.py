"""Images of `alipes deploy image` in containers of a real podman: any user, a read-only root, no network."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import Done, alipes_process
from support.models import add_model, times
from support.podman import Missing, Podman, engine
from support.python_models import add_python_model
from support.registry import is_installed, registry
from support.waiting import until

pytestmark = [
    pytest.mark.slow("an image is made of all that is installed, and containers are started"),
    pytest.mark.timeout(900),
    pytest.mark.proof,
]

NAME = "localhost/alipes-test:1"
ASK = """
import numpy
from alipes.client import Client
with Client("localhost:8001") as client:
    print(client.infer("times", numpy.array([[1, 2]], numpy.float32)).tolist())
    print(client.infer("echo", numpy.array([3, 4], numpy.int32)).tolist())
"""
WRITE = """
import os, pathlib
for folder in ("/", "/opt/alipes", "/models", "/tmp"):
    try:
        pathlib.Path(folder, "new").write_text("")
        print(os.getuid(), "wrote", folder)
    except OSError as error:
        print(os.getuid(), folder, error.strerror)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an image with a model lies, as an archive and as a folder, with the cache of these tests alone."""
    found = tmp_path_factory.mktemp("image")
    (found / "models").mkdir()
    add_model(found / "models", "times", times())
    add_python_model(found / "models", "echo")
    for output in ("image.tar", "image"):
        done = deploy(found, "--output", str(found / output), "--name", "alipes-test:1")
        assert (done.code, done.err) == (0, "")
    return found


def deploy(folder: Path, *words: str) -> Done:
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    return alipes_process("deploy", "image", str(folder / "models"), *words, environment=cache)


@pytest.fixture(scope="module")
def podman(folder: Path) -> Iterator[Podman]:
    """An engine that has loaded the image."""
    try:
        with engine() as made:
            assert NAME in made("load", "--input", str(folder / "image.tar"))
            yield made
    except Missing as error:
        pytest.skip(f"podman cannot run a container here: {error}")


@pytest.mark.parametrize("user", ["54321", "10001:10001", "0"])
def test_it_serves_as_any_user_with_a_read_only_root_and_no_network(user: str, podman: Podman) -> None:
    name = f"served-{user.partition(':')[0]}"
    podman("run", "--detach", "--name", name, "--read-only", "--user", user, "--network=none", NAME)
    try:
        until(lambda: "is ready" in log(podman, name))
        assert podman("exec", name, "python", "-c", ASK) == "[[2.0, 4.0]]\n[3, 4]\n"
        number = user.partition(":")[0]
        read_only = "Read-only file system"
        assert podman("exec", name, "python", "-c", WRITE).splitlines() == [
            *(f"{number} {place} {read_only}" for place in ("/", "/opt/alipes", "/models")),
            f"{number} wrote /tmp",
        ]
        podman("kill", "--signal", "TERM", name)
        until(lambda: state(podman, name) != "true 0")
        assert state(podman, name) == "false 0"
        assert "Signal (15) Received" in log(podman, name)
    finally:
        podman("rm", "--force", "--time=0", name)


def log(podman: Podman, name: str) -> str:
    """What a container has written to both outputs."""
    done = subprocess.run(
        ["podman", "logs", name],
        env=os.environ | podman.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return done.stdout


def state(podman: Podman, name: str) -> str:
    """Whether a container runs, and its exit code."""
    return podman("inspect", "--format", "{{.State.Running}} {{.State.ExitCode}}", name).strip()


def test_the_engine_calls_it_by_its_digest(folder: Path, podman: Podman) -> None:
    digest = json.loads((folder / "image" / "index.json").read_bytes())["manifests"][0]["digest"]
    assert podman("inspect", "--format", "{{.Digest}}", NAME).strip() == digest


def test_a_folder_is_pulled(folder: Path, podman: Podman) -> None:
    pulled = podman("pull", "--quiet", f"oci:{folder}/image").strip()
    assert podman("inspect", "--format", "{{.Id}}", NAME).strip() == pulled


@pytest.mark.skipif(not is_installed(), reason="docker-registry is not installed")
def test_it_is_pushed_to_a_registry_and_pulled_from_there(folder: Path, podman: Podman, tmp_path: Path) -> None:
    with registry(tmp_path) as address:
        done = deploy(folder, "--push", f"{address}/team/models:1")
        assert (done.code, done.err) == (0, "")
        pulled = podman("pull", "--quiet", "--tls-verify=false", f"{address}/team/models:1").strip()
    assert podman("inspect", "--format", "{{.Id}}", NAME).strip() == pulled
