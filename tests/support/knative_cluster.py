"""Knative as it is installed: webhook, controller, autoscaler and activator, and a node whose pods have addresses.

Requests go through Knative's activator to its queue-proxy in the pod. What a cluster has besides, an ingress and DNS,
is said to be there: clients name the revision in headers, as an ingress would.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from alipes.deploy.yaml_text import documents_of

from support.command import alipes_process
from support.kinds import add_kinds_of
from support.kube import ControlPlane, Missing, Refused, control_plane, need, program_file, program_folder
from support.kubelet import ADDRESS, Machine, machine
from support.network import JoinedNetwork, joined_network, own_network
from support.registry import is_installed, registry
from support.waiting import TIMEOUT_S

PROGRAMS: Final = ("kn-webhook", "kn-controller", "kn-autoscaler", "kn-activator", "kn-queue")
SERVICES: Final = "/apis/serving.knative.dev/v1/namespaces/{namespace}/services"

_NETWORKING: Final = "/apis/networking.internal.knative.dev/v1alpha1"
_SYSTEM: Final = "knative-serving"
_ACTIVATOR: Final = ("127.0.0.1", 8012)
_QUEUE_IMAGE: Final = "localhost/queue:1"
_QUEUE_USER: Final = "65532"
_WEBHOOK_ADDRESS: Final = "10.0.0.77"
"""Of the range of services: the API server asks it, and no proxy stands between."""
_HOSTS: Final = "127.0.0.1 localhost autoscaler.knative-serving.svc.cluster.local\n"
# What waits for minutes elsewhere. The activator stays between clients and pods, as for all but the largest services.
_AUTOSCALER: Final = {"stable-window": "12s", "scale-to-zero-grace-period": "6s", "target-burst-capacity": "-1"}
_FOLLOW_S: Final = 0.3


@dataclass(frozen=True)
class KnativeCluster:
    """A cluster of one node.

    Attributes:
        plane: Its control plane.
        machine: Its node.
        image: The server's image, with an app.
    """

    plane: ControlPlane
    machine: Machine
    image: str

    def post(self, namespace: str, revision: str, path: str, body: object) -> tuple[int, bytes]:
        """The status and the body of an answer, through the activator, on a connection of its own."""
        connection = HTTPConnection(*_ACTIVATOR, timeout=TIMEOUT_S)
        headers = {"Knative-Serving-Namespace": namespace, "Knative-Serving-Revision": revision}
        try:
            connection.request("POST", path, json.dumps(body), headers | {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


@contextmanager
def knative_cluster(folder: Path, app: Path) -> Iterator[KnativeCluster]:
    """A cluster in a network of its own, of which nothing is left afterwards.

    Args:
        folder: An empty folder for its files.
        app: The file of the app that goes into the server's image.

    Raises:
        Missing: If programs are not there.
        PermissionError: If this user may have no network.
    """
    need(*PROGRAMS)
    if not is_installed():
        raise Missing("docker-registry is not installed: tools/install-system-tools")
    for name in ("plane", "registry"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        stack.enter_context(own_network(f"{ADDRESS}/32"))
        plane = stack.enter_context(control_plane(folder / "plane", listen_at="0.0.0.0"))
        plane.start_controllers()
        images = stack.enter_context(registry(folder / "registry"))
        _install(plane, images)
        # The controller's health is at the port at which the autoscaler hears of requests; all have another one alike.
        _start(plane, "webhook", stack.enter_context(joined_network(1, _WEBHOOK_ADDRESS)))
        _start(plane, "controller", stack.enter_context(joined_network(2)))
        _start_scaling(plane, folder / "hosts")
        stack.enter_context(_ingresses(plane))
        node = stack.enter_context(machine(folder / "node", plane))
        node.load_image(_QUEUE_IMAGE, program_file("kn-queue"), user=_QUEUE_USER)
        yield KnativeCluster(plane, node, _push(f"{images}/alipes:1", app, folder / "cache"))


def _install(plane: ControlPlane, registry_address: str) -> None:
    """Adds Knative's kinds, its settings, its webhooks, and the services by which its programs find each other."""
    files = program_folder("kn-controller")
    add_kinds_of(plane, files / "kinds.yaml")
    plane.namespace(_SYSTEM)
    changes: Mapping[str, Mapping[str, str]] = {
        "config-autoscaler": _AUTOSCALER,
        "config-deployment": {
            "queue-sidecar-image": _QUEUE_IMAGE,
            "registries-skipping-tag-resolving": registry_address,
        },
    }
    for settings in documents_of((files / "settings.yaml").read_text(encoding="utf-8"), "settings"):
        name = settings["metadata"]["name"]
        data = {key: value for key, value in (settings.get("data") or {}).items() if key != "_example"}
        metadata = {"name": name, "labels": settings["metadata"].get("labels", {})}
        _make(plane, "configmaps", {"metadata": metadata, "data": data | dict(changes.get(name, {}))})
    for found in documents_of((files / "webhooks.yaml").read_text(encoding="utf-8"), "webhooks"):
        if found["kind"] == "Secret":
            _make(plane, "secrets", found)
        else:
            plane.request("POST", f"/apis/admissionregistration.k8s.io/v1/{found['kind'].lower()}s", found)
    _make(plane, "services", _service("webhook", {"https-webhook": 443}, clusterIP=_WEBHOOK_ADDRESS))
    ports = {"http": 8012, "http2": 8013}
    _make(plane, "services", _service("activator-service", ports))
    subset = {"addresses": [{"ip": ADDRESS}], "ports": [{"name": name, "port": port} for name, port in ports.items()]}
    _make(plane, "endpoints", {"metadata": {"name": "activator-service"}, "subsets": [subset]})


def _service(name: str, ports: Mapping[str, int], **spec: Any) -> dict[str, Any]:
    named = [{"name": each, "port": port} for each, port in ports.items()]
    return {"metadata": {"name": name}, "spec": {"ports": named, **spec}}


def _make(plane: ControlPlane, plural: str, body: Mapping[str, Any]) -> None:
    plane.request("POST", f"/api/v1/namespaces/{_SYSTEM}/{plural}", body)


def _environment(plane: ControlPlane, name: str, address: str, host: str) -> dict[str, str]:
    """Of a program of Knative: what its pod would tell it."""
    return {
        "KUBECONFIG": str(plane.kubeconfig(host=host)),
        "SYSTEM_NAMESPACE": _SYSTEM,
        "CONFIG_LOGGING_NAME": "config-logging",
        "CONFIG_OBSERVABILITY_NAME": "config-observability",
        "METRICS_DOMAIN": "knative.dev/serving",
        "POD_NAME": f"{name}-0",
        "POD_IP": address,
    }


def _start(plane: ControlPlane, name: str, network: JoinedNetwork) -> None:
    """Starts a program in a network of its own, and returns once it works."""
    environment = _environment(plane, name, network.address, network.gateway)
    if name == "webhook":
        environment |= {"WEBHOOK_NAME": "webhook", "WEBHOOK_PORT": "443"}
    plane.run(f"kn-{name}", environment=environment, launcher=network.launcher)
    if name == "webhook":
        plane.wait_until(lambda: _is_checked(plane), "the API server asks Knative's webhook")
    else:
        plane.wait_until(lambda: _answers(f"http://{network.address}:8080/readiness"), f"Knative's {name} works")


def _start_scaling(plane: ControlPlane, hosts: Path) -> None:
    """Starts autoscaler and activator, and returns once the activator tells the autoscaler of requests."""
    hosts.write_text(_HOSTS, encoding="ascii")
    named = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts))
    for name, profiling in (("autoscaler", "8009"), ("activator", "8010")):
        environment = _environment(plane, name, ADDRESS, "127.0.0.1") | {"PROFILING_PORT": profiling}
        plane.run(f"kn-{name}", environment=environment, launcher=named)
    host, port = _ACTIVATOR
    plane.wait_until(lambda: _answers(f"http://{host}:{port}/"), "Knative's activator works")


def _answers(url: str) -> bool:
    try:
        with urlopen(Request(url, headers={"User-Agent": "kube-probe/1"}), timeout=TIMEOUT_S):
            return True
    except (URLError, OSError):
        return False


def _is_checked(plane: ControlPlane) -> bool:
    """Whether Knative itself refuses a service."""
    service = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "refused"}}
    pod = {"containers": [{"image": "image"}], "containerConcurrency": -1}
    try:
        path = f"{SERVICES.format(namespace='default')}?dryRun=All"
        plane.request("POST", path, service | {"spec": {"template": {"spec": pod}}})
    except Refused as refused:
        return "validation.webhook.serving.knative.dev" in str(refused) and "denied the request" in str(refused)
    return False


@contextmanager
def _ingresses(plane: ControlPlane) -> Iterator[None]:
    """Says of each ingress of Knative that it is there, until the block ends."""
    over = threading.Event()

    def follow() -> None:
        while not over.wait(_FOLLOW_S):
            with suppress(Refused, OSError):  # one that went meanwhile
                for ingress in plane.request("GET", f"{_NETWORKING}/ingresses")["items"]:
                    _say_ready(plane, ingress)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _say_ready(plane: ControlPlane, ingress: Mapping[str, Any]) -> None:
    metadata = ingress["metadata"]
    if ingress.get("status", {}).get("observedGeneration") == metadata["generation"]:
        return
    path = f"{_NETWORKING}/namespaces/{metadata['namespace']}/ingresses"
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": metadata["creationTimestamp"]}
        for name in ("Ready", "LoadBalancerReady", "NetworkConfigured")
    ]
    balancer = {"ingress": [{"domainInternal": "ingress.local"}]}
    plane.patch_status(
        f"{path}/{metadata['name']}",
        {
            "observedGeneration": metadata["generation"],
            "conditions": conditions,
            "publicLoadBalancer": balancer,
            "privateLoadBalancer": balancer,
        },
    )


def _push(name: str, app: Path, cache: Path) -> str:
    """Makes an image with an app and pushes it; its name."""
    done = alipes_process(
        *("deploy", "image", str(app), f"--push={name}", "--plain-http"), environment={"XDG_CACHE_HOME": str(cache)}
    )
    assert done.code == 0, done.err
    return name
