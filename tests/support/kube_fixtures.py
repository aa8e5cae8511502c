"""The Kubernetes that tests of a session share; each test has a namespace of its own in it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from support.kserve import add_kinds
from support.kube import ControlPlane, Missing, Node, control_plane

GROUP = "kubernetes"
"""The group of tests that share it, so that one process has them all."""

FIXTURES = frozenset({"api_server", "kserve_kinds", "kubernetes", "namespace"})


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real API server: it checks and keeps objects."""
    try:
        with control_plane(tmp_path_factory.mktemp("kubernetes")) as plane:
            yield plane
    except Missing as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def kubernetes(api_server: ControlPlane) -> ControlPlane:
    """The same with controllers, and two nodes with four GPUs each."""
    try:
        api_server.start_controllers(Node("node-0"), Node("node-1"))
    except Missing as reason:
        pytest.skip(str(reason))
    return api_server


@pytest.fixture(scope="session")
def kserve_kinds(api_server: ControlPlane) -> ControlPlane:
    """The same with the kinds of KServe, whose controller the test plays."""
    try:
        add_kinds(api_server)
    except Missing as reason:
        pytest.skip(str(reason))
    return api_server


@pytest.fixture
def namespace(api_server: ControlPlane) -> Iterator[str]:
    """The name of a namespace for one test. Ask for `kubernetes` before it, where pods are to run in it."""
    name = f"test-{secrets.token_hex(4)}"
    api_server.namespace(name)
    yield name
    # The GPUs of its pods are for other tests. To remove all of it costs a hundred requests, and it goes with the rest.
    for kind in ("deployments", "statefulsets", "daemonsets"):
        api_server.request("DELETE", f"/apis/apps/v1/namespaces/{name}/{kind}")
