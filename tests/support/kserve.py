"""KServe's own code, asked about objects of KServe: its webhooks, and what its controller makes of them."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

from alipes.deploy.yaml_text import documents_of, yaml_of

from support.kinds import add_kinds_of
from support.kube import ControlPlane, Missing, need, program_file, program_folder
from support.ports import free_ports
from support.waiting import TIMEOUT_S

PROGRAM = "kserve-render"
CONTROLLERS = "kserve-manager"


@dataclass(frozen=True)
class Rendered:
    """What KServe says.

    Attributes:
        refusals: What was refused, each with the object, the step and the reason.
        steps: How often each step accepted an object.
        objects: What its controller made, and the pods as its webhook changes them.
    """

    refusals: list[str]
    steps: dict[str, int]
    objects: list[dict[str, Any]]

    def only(self, kind: str, name: str = "") -> dict[str, Any]:
        """The one object of a kind, or of a kind and a name."""
        (found,) = [each for each in self.objects if each["kind"] == kind and name in {"", each["metadata"]["name"]}]
        return found


def render(*clusters: Iterable[Mapping[str, Any]]) -> list[Rendered]:
    """KServe's answer to the objects of each cluster. To start it takes longer than one answer.

    Raises:
        Missing: If the program is not built.
    """
    need(PROGRAM)
    settings = program_folder(PROGRAM) / "settings.yaml"
    done = subprocess.run(
        [program_file(PROGRAM), f"-config={settings}"],
        input="\n===\n".join(yaml_of(objects) for objects in clusters),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [_rendered(report) for report in json.loads(done.stdout)]


def _rendered(report: Mapping[str, Any]) -> Rendered:
    refusals: list[str] = []
    steps: dict[str, int] = {}
    for verdict in report["verdicts"]:
        step = verdict["step"]
        if verdict["accepted"]:
            steps[step] = steps.get(step, 0) + 1
        else:
            refusals.append(f"{verdict['kind']}/{verdict['name']}, {step}: {verdict.get('message', '')}")
    return Rendered(refusals, steps, report["objects"])


def add_kinds(plane: ControlPlane) -> None:
    """Adds KServe's kinds to an API server, and returns once it knows them.

    Raises:
        Missing: If the program is not built, whose folder has them.
    """
    need(PROGRAM)
    add_kinds_of(plane, program_folder(PROGRAM) / "kinds.yaml")


def start_controllers(plane: ControlPlane, *, webhooks: bool = False) -> None:
    """Starts KServe's controllers, and returns once they work.

    They listen at all addresses: the network has to be one of the test's own.

    Args:
        plane: Whose objects they look after.
        webhooks: Whether the API server asks them about objects and has them change pods, as in any installation.

    Raises:
        Missing: If they are not built.
    """
    need(PROGRAM, CONTROLLERS)
    add_kinds(plane)
    plane.namespace("kserve")
    settings = (program_folder(PROGRAM) / "settings.yaml").read_bytes()
    plane.request("POST", "/api/v1/namespaces/kserve/configmaps", settings, "application/yaml")
    keys = plane.folder / "k8s-webhook-server" / "serving-certs"  # where they look for them
    keys.mkdir(parents=True)
    for name, source in (("tls.crt", "server.pem"), ("tls.key", "server.key")):
        shutil.copyfile(plane.folder / source, keys / name)
    metrics, health, port = free_ports(3)
    plane.run(
        CONTROLLERS,
        f"--metrics-addr=127.0.0.1:{metrics}",
        f"--health-probe-addr=127.0.0.1:{health}",
        f"--webhook-port={port}",
        environment={
            "KUBECONFIG": str(plane.kubeconfig()),
            "POD_NAMESPACE": "kserve",
            "TMPDIR": str(plane.folder),
        },
    )
    plane.wait_until(lambda: _answers(f"http://127.0.0.1:{health}/readyz"), "KServe's controllers work")
    if webhooks:
        plane.wait_until(lambda: _listens(port), "KServe's webhooks listen")
        _register_webhooks(plane, port)


def _register_webhooks(plane: ControlPlane, port: int) -> None:
    """Has the API server ask a program of this machine in place of a Service, which needs a network of its own."""
    file = program_folder(PROGRAM) / "webhooks.yaml"
    if not file.exists():
        raise Missing("needs KServe's webhooks: make kube")
    authority = base64.b64encode(plane.authority.read_bytes()).decode()
    for found in documents_of(file.read_text(encoding="utf-8"), str(file)):
        for webhook in found["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}
        plural = f"{found['kind'].lower()}s"
        plane.request("POST", f"/apis/admissionregistration.k8s.io/v1/{plural}", found)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=TIMEOUT_S):
            return True
    except OSError:
        return False
