"""`alipes deploy kserve` with KServe's own controllers, whose servers run on a node without a machine."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from alipes.deploy.yaml_text import yaml_of
from support.command import Done, alipes
from support.kserve import start_controllers
from support.kube import ControlPlane, Missing, Node, control_plane
from support.kubelet import ADDRESS
from support.network import own_network
from support.waiting import until

pytestmark = [pytest.mark.extra("deploy"), pytest.mark.proof, pytest.mark.timeout(600)]

FIRST = {"uri": "gs://bucket/1"}
SECOND = {"uri": "gs://bucket/2"}
CANARY = {"name": "next", "percent": 20, "storage": SECOND}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ExitStack() as stack:
        try:
            stack.enter_context(own_network(f"{ADDRESS}/32"))
            found = stack.enter_context(control_plane(tmp_path_factory.mktemp("kserve")))
            found.start_controllers(Node("node-0"))
            start_controllers(found)
        except (Missing, PermissionError) as reason:
            pytest.skip(str(reason))
        yield found


class Place:
    """A namespace, and `alipes deploy` in it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.name = f"test-{secrets.token_hex(4)}"
        self._plane = plane
        plane.namespace(self.name)

    def run(self, *words: str, text: str = "") -> Done:
        kubeconfig = self._plane.kubeconfig(namespace=self.name)
        done = alipes("deploy", *words, f"--kubeconfig={kubeconfig}", text=text)
        assert done.code == 0, done.err
        return done

    def apply(self, storage: dict[str, Any], *canaries: dict[str, Any], name: str = "") -> Done:
        scaling = {"kind": "none", "least": 2}
        predictor = {"format": "sklearn", "storage": storage, "scaling": scaling, "name": name}
        values = {"name": "iris", "predictor": predictor, "canaries": canaries}
        return self.run("apply", "-", "--timeout=120", text=yaml_of(kserve_objects(described(values))))

    def pods(self) -> dict[str, str]:
        """The running pods, each with its model."""
        listed = self._plane.request("GET", f"/api/v1/namespaces/{self.name}/pods")["items"]
        source = "internal.serving.kserve.io/storage-initializer-sourceuri"
        return {
            pod["metadata"]["name"]: pod["metadata"]["annotations"].get(source, "")
            for pod in listed
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def listed(self, group: str, plural: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._plane.request("GET", f"/apis/{group}/namespaces/{self.name}/{plural}")[
            "items"
        ]
        return found

    def until_served_by(self, *models: dict[str, Any]) -> dict[str, str]:
        """The pods, once they have these models."""
        wanted = sorted(model["uri"] for model in models)
        until(lambda: sorted(self.pods().values()) == wanted, f"pods of {wanted}")
        return self.pods()


@pytest.fixture
def place(plane: ControlPlane) -> Place:
    return Place(plane)


def test_a_service_becomes_ready_and_is_scaled(place: Place) -> None:
    done = place.apply(FIRST)
    assert "iris: ready, Standard, http://iris-" in done.out
    assert ["predictor", "100", "%", "ready"] in done.rows
    place.until_served_by(FIRST, FIRST)
    assert place.run("kserve", "scale", "iris", "3", "--timeout=120").code == 0
    assert list(place.pods().values()) == [FIRST["uri"]] * 3


def test_a_wait_ends_once_all_servers_have_the_new_model(place: Place) -> None:
    place.apply(FIRST)
    place.apply(SECOND)
    assert list(place.pods().values()) == [SECOND["uri"]] * 2


def test_a_canary_is_promoted_without_starting_its_servers_again(place: Place) -> None:
    place.apply(FIRST)
    done = place.apply(FIRST, CANARY)
    assert [row[:4] for row in done.rows if "%" in row] == [
        ["predictor", "80", "%", "ready"],
        ["next", "20", "%", "ready"],
    ]
    before = place.until_served_by(FIRST, SECOND)  # the servers of a canary are taken from those of the predictor
    (canary,) = [name for name, model in before.items() if model == SECOND["uri"]]

    done = place.run("kserve", "promote", "iris", "--timeout=120")
    assert "next gets all requests" in done.out
    assert ["next", "100", "%", "ready"] in done.rows
    assert canary in place.until_served_by(SECOND, SECOND)

    place.apply(SECOND, name="next")
    assert canary in place.until_served_by(SECOND, SECOND)


def test_a_rollback_leaves_the_first_model_alone(place: Place) -> None:
    place.apply(FIRST)
    place.until_served_by(FIRST, FIRST)
    place.apply(FIRST, CANARY)
    left = [name for name, model in place.until_served_by(FIRST, SECOND).items() if model == FIRST["uri"]]
    done = place.run("kserve", "rollback", "iris", "--timeout=120")
    assert ["predictor", "100", "%", "ready"] in done.rows
    assert set(left) < set(place.until_served_by(FIRST, FIRST))


def test_a_service_is_stopped_and_started_again(place: Place) -> None:
    place.apply(FIRST)
    place.until_served_by(FIRST, FIRST)
    assert "iris: stopped" in place.run("kserve", "stop", "iris", "--timeout=120").out
    place.until_served_by()
    assert "iris: ready" in place.run("kserve", "start", "iris", "--timeout=120").out
    place.until_served_by(FIRST, FIRST)


def test_a_removal_ends_with_the_last_of_what_kserve_made(place: Place) -> None:
    place.apply(FIRST)
    place.until_served_by(FIRST, FIRST)
    assert "iris: ready" in place.run("status", "iris").out
    done = place.run("remove", "iris", "--timeout=120")
    assert ["InferenceService", "iris", "removed"] in done.rows
    for group, plural in (("apps/v1", "deployments"), ("serving.kserve.io/v1beta1", "inferenceservices")):
        assert not place.listed(group, plural)
    place.until_served_by()
