"""KServe as it is installed: its manager with webhooks, a node with a kubelet, a registry and a store of models.

Models are fetched by KServe's own initializer, the package kserve-storage, which `tools/fetch-clients` fetches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.checkout import ROOT
from support.command import alipes_process
from support.file_server import FileServer, file_server
from support.kserve import start_controllers
from support.kube import ControlPlane, Missing, control_plane
from support.kubelet import ADDRESS, Machine, machine
from support.network import own_network
from support.registry import is_installed, registry

_INITIALIZER: Final = ROOT / ".venv-clients" / "kserve-storage"
# What the script of KServe's image of the initializer does.
_FETCH: Final = """\
import sys
from kserve_storage import Storage
try:
    Storage.download_files(sys.argv[1::2], sys.argv[2::2])
except RuntimeError as error:
    sys.exit(f"Storage initialization failed: {error}")
"""


@dataclass(frozen=True)
class KServeCluster:
    """A cluster of one node.

    Attributes:
        plane: Its control plane.
        machine: Its node.
        image: The server's image, without models.
        store: Where models are published.
    """

    plane: ControlPlane
    machine: Machine
    image: str
    store: FileServer


@contextmanager
def kserve_cluster(folder: Path) -> Iterator[KServeCluster]:
    """A cluster in a network of its own, of which nothing is left afterwards.

    Args:
        folder: An empty folder for its files.

    Raises:
        Missing: If programs are not there.
        PermissionError: If this user may have no network.
    """
    if not is_installed():
        raise Missing("docker-registry is not installed: tools/install-system-tools")
    if not (_INITIALIZER / "made").exists():
        raise Missing("KServe's initializer is not here: tools/fetch-clients")
    for name in ("plane", "registry"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        stack.enter_context(own_network(f"{ADDRESS}/32"))
        plane = stack.enter_context(control_plane(folder / "plane"))
        plane.start_controllers()
        start_controllers(plane, webhooks=True)
        node = stack.enter_context(machine(folder / "node", plane))
        store = stack.enter_context(file_server(host=ADDRESS))
        store.headers["Content-Type"] = "application/octet-stream"  # KServe's initializer takes no other files
        images = stack.enter_context(registry(folder / "registry"))
        cache = folder / "cache"
        image = _push(f"{images}/alipes:1", cache)
        _use_initializer(plane, _push(f"{images}/initializer:1", cache, "--package=kserve-storage"))
        yield KServeCluster(plane, node, image, store)


def _push(name: str, cache: Path, *words: str) -> str:
    """Makes an image without models and pushes it; its name."""
    done = alipes_process(
        *("deploy", "image", f"--push={name}", "--plain-http", *words),
        environment={"XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(_INITIALIZER)},
    )
    assert done.code == 0, done.err
    return name


def _use_initializer(plane: ControlPlane, image: str) -> None:
    """What KServe is installed with, but for the image: the package is that of the release."""
    container = {
        "name": "storage-initializer",
        "image": image,
        "command": ["python", "-c", _FETCH],
        "resources": {"requests": {"memory": "100Mi", "cpu": "100m"}, "limits": {"memory": "1Gi", "cpu": "1"}},
    }
    spec = {"container": container, "supportedUriFormats": [{"regex": "https?://(.+)/(.+)"}]}
    kind = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ClusterStorageContainer"}
    plane.request(
        "POST",
        "/apis/serving.kserve.io/v1alpha1/clusterstoragecontainers",
        {**kind, "metadata": {"name": "default"}, "spec": spec | {"workloadType": "initContainer"}},
    )
