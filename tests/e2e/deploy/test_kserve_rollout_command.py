"""`alipes deploy kserve rollout` and a real API server with KServe's kinds; the test plays KServe's controller.

No pod runs here, so that no rollout finds a request: in `test_kserve_kubelet.py` there are servers.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from alipes.cloud.kubernetes import Cluster
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from alipes.deploy.yaml_text import yaml_of
from alipes.errors import CloudError
from support.command import Done, alipes
from support.kube import VISITOR, ControlPlane, Refused
from support.waiting import until

pytestmark = pytest.mark.extra("deploy")

PREDICTOR = {"format": "sklearn", "storage": {"uri": "gs://bucket/1"}}
CANARY = {"name": "next", "percent": 5, "storage": {"uri": "gs://bucket/2"}}
DARK = {"name": "dark", "percent": 0, "storage": {"uri": "gs://bucket/3"}}
QUICK = ("--steps=10,50", "--step-time=0.1", "--last-step-time=0.3", "--look-every=0.1")
TOO_FEW = "0 requests of the candidate are too few for a verdict"


class Followed:
    """The InferenceService `iris`, and a controller that follows it until it is stopped."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane, self.namespace = plane, namespace
        self._mode = "Standard"
        self._path = f"/apis/serving.kserve.io/v1beta1/namespaces/{namespace}/inferenceservices/iris"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow)
        self.shares: list[int | None] = []

    def start(self, values: dict[str, Any]) -> None:
        """Sends the service."""
        wanted = {"name": "iris", "predictor": PREDICTOR, "runtimes": {"written": False}, **values}
        done = self.deploy("apply", "-", "--no-wait", text=yaml_of(kserve_objects(described(wanted))))
        assert done.code == 0, done.err
        self._mode = wanted.get("mode", self._mode)
        self._thread.start()
        until(lambda: self.shares, "the controller follows")

    def stop(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def deploy(self, *words: str, text: str = "", user: str = "admin") -> Done:
        return alipes("deploy", *words, f"--kubeconfig={self.kubeconfig(user)}", text=text)

    def kubeconfig(self, user: str = "admin") -> Path:
        return self._plane.kubeconfig(user, self.namespace)

    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self._plane.request("GET", self._path)["spec"]
        return found

    def names(self) -> list[str]:
        """The canaries that are described."""
        return [one["predictor"]["name"] for one in self.spec().get("canary", ())]

    def _follow(self) -> None:
        while not self._over.wait(0.05):
            with suppress(Refused, OSError):
                self._say(self.spec())

    def _say(self, spec: dict[str, Any]) -> None:
        canaries = spec.get("canary", ())
        seen = [
            {"name": one["predictor"]["name"], "ready": True, "trafficPercent": one["trafficPercent"]}
            for one in canaries
        ]
        percent = spec["predictor"].get("canaryTrafficPercent")
        share = next((one["trafficPercent"] for one in seen if one["name"] == "next"), percent)
        if not self.shares or self.shares[-1] != share:
            self.shares.append(share)
        newest = 100 if percent is None else percent
        traffic = [
            {"revisionName": "iris-2", "percent": newest, "latestRevision": True},
            {"revisionName": "iris-1", "percent": 100 - newest, "latestRevision": False},
        ]
        revisions = {"latestRolledoutRevision": "iris-1"}
        revisions |= dict.fromkeys(("latestCreatedRevision", "latestReadyRevision"), "iris-2")
        status: dict[str, Any] = {"deploymentMode": self._mode, "canaryStatuses": seen}
        if self._mode == "Knative":
            status["components"] = {"predictor": {**revisions, "traffic": traffic}}
        self._plane.patch_status(self._path, status)


@pytest.fixture
def service(kserve_kinds: ControlPlane, namespace: str) -> Iterator[Followed]:
    found = Followed(kserve_kinds, namespace)
    yield found
    found.stop()


def events_in(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def test_a_canary_without_requests_goes_through_its_steps_and_back(service: Followed, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    service.start({"canaries": [CANARY, DARK]})
    done = service.deploy("kserve", "rollout", "iris", "next", *QUICK, f"--journal={journal}")
    assert done.code == 1, done.err
    assert done.out.splitlines()[-1] == f"the canary of iris is taken back: {TOO_FEW}"
    assert service.names() == ["dark"]
    assert service.spec()["predictor"]["model"]["storageUri"] == "gs://bucket/1"
    events = events_in(journal)
    assert [event["share"] for event in events if event["event"] == "step"] == [10, 50]
    assert (events[0]["stable"], events[0]["candidate"]) == ("predictor", "next")
    assert [event["event"] for event in events[-2:]] == ["taking back", "rolled back"]
    assert [share for share in service.shares if share in {10, 50}] == [10, 50]


def test_with_knative_the_newest_revision_goes_through_the_steps(service: Followed) -> None:
    service.start({"mode": "Knative", "predictor": PREDICTOR | {"canaryPercent": 5}})
    done = service.deploy("kserve", "rollout", "iris", *QUICK, "--json")
    assert (done.code, json.loads(done.out)["reason"]) == (1, TOO_FEW), done.err
    assert service.spec()["predictor"]["canaryTrafficPercent"] == 0
    assert [share for share in service.shares if share in {10, 50}] == [10, 50]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_rollout_takes_the_canary_back(service: Followed, number: signal.Signals) -> None:
    service.start({"canaries": [CANARY]})
    words = ["deploy", "kserve", "rollout", "iris", "--steps=10", "--look-every=60"]
    words.append(f"--kubeconfig={service.kubeconfig()}")
    process = subprocess.Popen([sys.executable, "-m", "alipes", *words], stdout=subprocess.PIPE, text=True)
    until(lambda: 10 in service.shares, "the first step")
    process.send_signal(number)
    out, _ = process.communicate(timeout=240)
    assert (process.returncode, out) == (1, "the canary of iris is taken back: the rollout was stopped\n")
    assert service.names() == []


def test_a_rollout_that_was_killed_goes_on_at_its_step(service: Followed, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    service.start({"canaries": [CANARY]})
    words = ["deploy", "kserve", "rollout", "iris", *QUICK[:1], "--step-time=0.1", "--look-every=0.1"]
    words += ["--last-step-time=600", f"--journal={journal}", f"--kubeconfig={service.kubeconfig()}"]
    process = subprocess.Popen([sys.executable, "-m", "alipes", *words], stdout=subprocess.DEVNULL)
    until(lambda: journal.exists() and '"step", "share": 50' in journal.read_text(), "the last step")
    process.kill()
    process.wait()
    assert service.names() == ["next"]
    done = service.deploy("kserve", "rollout", "iris", *QUICK, f"--journal={journal}")
    assert (done.code, service.names()) == (1, []), done.err
    assert [event["share"] for event in events_in(journal) if event["event"] == "step"] == [10, 50, 50]


def test_a_rollout_that_was_killed_after_its_end_says_how_it_ended(service: Followed, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    began = {"event": "began", "service": f"{service.namespace}/iris", "model": "iris", "candidate": "next"}
    journal.write_text(json.dumps(began) + "\n")
    service.start({"canaries": [CANARY]})
    until(lambda: service.deploy("kserve", "rollback", "iris", "--no-wait").code == 0, "the canary is taken back")
    done = service.deploy("kserve", "rollout", "iris", f"--journal={journal}")
    text = "the canary of iris is taken back: the rollout was broken off after next was taken back\n"
    assert (done.code, done.out) == (1, text), done.err
    assert events_in(journal)[-1]["event"] == "rolled back"
    again = service.deploy("kserve", "rollout", "iris", f"--journal={journal}")
    assert (again.code, "has no canary" in again.message) == (1, True)


def test_what_cannot_be_rolled_out_is_one_sentence(service: Followed) -> None:
    nobody = service.deploy("kserve", "rollout", "nobody")
    assert (nobody.code, "there is no InferenceService" in nobody.message) == (1, True)
    service.start({"canaries": [CANARY, DARK]})
    assert "say which of next, dark" in service.deploy("kserve", "rollout", "iris").message
    copies = service.deploy("kserve", "rollout", "iris", "next", "--steps=0,50")
    assert (copies.code, "whole percentages of at least 1" in copies.message) == (1, True)
    assert service.deploy("kserve", "rollout", "iris", "next", "--steps=five").code == 2
    refused = service.deploy("kserve", "rollout", "iris", "next", user=VISITOR)
    assert (refused.code, "visitor" in refused.err) == (1, True)
    assert service.names() == ["next", "dark"]
    assert 10 not in service.shares


def test_a_pod_that_is_gone_is_known_by_the_answer_of_the_api_server(service: Followed) -> None:
    proxy = Cluster(service.kubeconfig()).pod_proxy(8080, headers={"Authorization": "Bearer key"})
    with pytest.raises(CloudError, match='pods "nobody" not found') as gone:
        proxy.call("nobody", "/v2/models/m/traffic")
    assert gone.value.reason == "NotFound"
    with pytest.raises(CloudError, match="visitor") as refused:
        Cluster(service.kubeconfig(VISITOR)).pod_proxy(8080).call("nobody", "/v2/models/m/traffic", b"{}")
    assert refused.value.reason == "Forbidden"
