"""A cluster of one real node with a registry of images, in a network of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.command import alipes_process
from support.kube import ControlPlane, Missing, control_plane
from support.kubelet import ADDRESS, Machine, machine
from support.network import own_network
from support.registry import is_installed, registry


@dataclass(frozen=True)
class RealNode:
    """A cluster of one node, which reaches this process and what it starts at `kubelet.ADDRESS`.

    Attributes:
        plane: Its control plane.
        machine: Its node.
        images: The address of the registry.
    """

    plane: ControlPlane
    machine: Machine
    images: str


@contextmanager
def real_node(folder: Path) -> Iterator[RealNode]:
    """A cluster in a network of its own, of which nothing is left afterwards.

    Args:
        folder: A folder for its files.

    Raises:
        Missing: If programs or rights are not there.
        PermissionError: If this user may have no network.
    """
    if not is_installed():
        raise Missing("docker-registry is not installed: tools/install-system-tools")
    for name in ("plane", "registry"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        stack.enter_context(own_network(f"{ADDRESS}/32"))
        plane = stack.enter_context(control_plane(folder / "plane"))
        plane.start_controllers()
        node = stack.enter_context(machine(folder / "node", plane))
        yield RealNode(plane, node, stack.enter_context(registry(folder / "registry")))


def push_image(name: str, cache: Path, *words: str) -> str:
    """Makes an image of the server and pushes it.

    Args:
        name: Its name, with the registry.
        cache: A folder for layers, which several images share.
        words: Further words for `alipes deploy image`: models, labels.

    Returns:
        The name.
    """
    done = alipes_process(
        *("deploy", "image", *words, f"--push={name}", "--plain-http"), environment={"XDG_CACHE_HOME": str(cache)}
    )
    assert (done.code, done.err) == (0, "")
    return name
