"""The lab in containers: podman-compose builds the image from a tree of this machine, and the page finds the server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.example import EXAMPLES, load_example
from support.podman import Missing, Podman, engine
from support.ports import free_ports
from support.waiting import until

pytestmark = [
    pytest.mark.extra("examples"),
    pytest.mark.proof,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("serving-lab-compose"),
]

PROJECT = "alipes-serving-lab"
# Lets containers of podman 4 find each other by name.
NAMES = Path("/usr/lib/cni/dnsname")
(make_weights,) = load_example("serving-lab", "make_weights")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab with its networks, and with what its image is built from."""
    folder = Path(shutil.copytree(EXAMPLES / "serving-lab", tmp_path_factory.mktemp("lab"), dirs_exist_ok=True))
    make_weights.write(folder)
    subprocess.run([sys.executable, "containers/gather.py", "build"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    if shutil.which("podman-compose") is None or not NAMES.exists():
        pytest.skip(f"not installed: podman-compose, or {NAMES}")
    try:
        with engine() as made:
            yield made
    except Missing as error:
        pytest.skip(f"podman cannot run a container here: {error}")


@contextmanager
def composed(podman: Podman, lab: Path, file: str, **variables: str) -> Iterator[tuple[str, str]]:
    """The containers of a compose file, up; the addresses of the page and of the server."""
    page, server = (str(port) for port in free_ports(2))
    ports = {"PAGE_PORT": page, "TRITON_PORT": server, "FASTAPI_PORT": server}
    # One layer for the whole image: the storage driver of tests copies each.
    environment = os.environ | podman.environment | ports | variables | {"BUILDAH_LAYERS": "false"}
    compose = ["podman-compose", "-p", PROJECT, "-f", f"containers/{file}"]
    try:
        done = subprocess.run(
            [*compose, "up", "-d"], cwd=lab, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        yield f"http://127.0.0.1:{page}/", f"http://127.0.0.1:{server}"
    finally:
        subprocess.run([*compose, "down"], cwd=lab, env=environment, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("file", "ready", "variables"),
    [
        ("compose-fastapi.yaml", "/docs", {}),
        ("compose-triton.yaml", "/v2/health/ready", {}),
        ("compose-triton.yaml", "/v2/health/ready", {"MODELS": "models-native"}),
        (
            "compose-triton.yaml",
            "/v2/health/ready",
            {"MODELS": "models-onnx", "FOOD11_MODEL_NAME": "food_classifier_onnx"},
        ),
    ],
    ids=["fastapi", "page only", "native", "steps in the page"],
)
def test_the_page_asks_the_server_in_the_other_container(
    podman: Podman, lab: Path, file: str, ready: str, variables: dict[str, str]
) -> None:
    import requests

    def answers(url: str) -> bool:
        try:
            return requests.get(url, timeout=5).status_code == 200
        except requests.ConnectionError:
            return False

    with composed(podman, lab, file, **variables) as (page, server):
        until(lambda: answers(server + ready), "the server is not ready")
        until(lambda: answers(page), "the page is not there")
        with (lab / "test_image.jpeg").open("rb") as picture:
            answer = requests.post(page, files={"file": ("soup.jpeg", picture, "image/jpeg")}, timeout=60)
        assert answer.status_code == 200, answer.text
        assert "<strong>Soup</strong>" in answer.text
    assert podman("ps", "--all", "--quiet") == ""
