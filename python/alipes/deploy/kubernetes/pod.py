"""The pod of one server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from alipes.deploy.description import Description
from alipes.deploy.image.settings import MODELS, USER
from alipes.deploy.kubernetes.metadata import HTTP, labels, scheme
from alipes.deploy.repository_place import Claim, claim_of
from alipes.deploy.serving import KEY_VARIABLE, TLS_FOLDER, arguments, stop_s

__all__ = ["TASK", "Shared", "pod", "task_pod"]

Object = dict[str, Any]

TASK: Final = "task"
"""Name of the container of pods that run a command."""

_SCRATCH: Final[tuple[Object, Object]] = (
    {"name": "scratch", "emptyDir": {}},
    {"name": "scratch", "mountPath": "/tmp"},
)
_RIGHTS: Final[Object] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_FAILURES: Final = 3
"""Questions without an answer after which a server counts as not ready; as dead after ten times as many."""


class Shared(NamedTuple):
    """A volume whose files pods share with processes elsewhere.

    Attributes:
        claim: Its claim.
        path: Where it is in the pods.
        user: Number of the user whom the files belong to.
        groups: Numbers of the groups of that user, the main one first.
    """

    claim: Claim
    path: str
    user: int
    groups: tuple[int, ...]


def pod(description: Description) -> Object:
    """The template of pods."""
    volumes = [volume for volume, _ in _volumes(description)]
    return {"metadata": _metadata(description), "spec": _spec(description, _container(description), volumes)}


def task_pod(description: Description, command: Sequence[str], shared: Shared) -> Object:
    """The template of pods that run a command to its end.

    Args:
        description: Its image, its resources, its variables and its nodes count.
        command: What a pod runs.
        shared: A volume that all of them share. They run as the user of its files, whom a file system of several
            machines knows by number.
    """
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": shared.claim.name}}
    mount: Object = {"name": "data", "mountPath": shared.path}
    if shared.claim.folder:
        mount["subPath"] = shared.claim.folder
    volumes: list[tuple[Object, Object]] = [_SCRATCH, (volume, mount)]
    container: Object = {
        "name": TASK,
        "image": description.image,
        "imagePullPolicy": description.pull_policy,
        "command": list(command),
        **_environment(description),
        "resources": _resources(description),
        "securityContext": _RIGHTS,
        # Its status has the last lines then, also of a command that could not say anything elsewhere.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for _, mount in volumes],
    }
    spec = _spec(description, container, [volume for volume, _ in volumes])
    spec["securityContext"] |= _identity(shared)
    metadata: Object = {"labels": labels(description)}
    if description.annotations:
        metadata["annotations"] = dict(description.annotations)
    return {"metadata": metadata, "spec": {"restartPolicy": "Never"} | spec}


def _identity(shared: Shared) -> Object:
    group, *others = shared.groups
    identity: Object = {"runAsNonRoot": shared.user != 0, "runAsUser": shared.user, "runAsGroup": group}
    return identity | {"fsGroup": group} | ({"supplementalGroups": others} if others else {})


def _metadata(description: Description) -> Object:
    annotations = dict(description.annotations)
    if description.scrape:
        annotations |= {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(description.ports.metrics),
            "prometheus.io/path": "/metrics",
        }
    return {"labels": labels(description)} | ({"annotations": annotations} if annotations else {})


def _spec(description: Description, container: Object, volumes: list[Object]) -> Object:
    spec: Object = {}
    if description.service_account:
        spec["serviceAccountName"] = description.service_account
    spec["automountServiceAccountToken"] = bool(description.service_account)
    if description.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in description.pull_secrets]
    spec |= {
        "terminationGracePeriodSeconds": stop_s(description),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    }
    if nodes := _nodes(description):
        spec["nodeSelector"] = nodes
    if tolerations := _tolerations(description):
        spec["tolerations"] = tolerations
    return spec


def _container(description: Description) -> Object:
    container: Object = {
        "name": "alipes",
        "image": description.image,
        "imagePullPolicy": description.pull_policy,
        "command": ["alipes", "serve"],
        "args": arguments(description),
        **_environment(description),
    }
    container |= {
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"}
            for name, port in (
                (HTTP, description.ports.http),
                ("grpc", description.ports.grpc),
                ("metrics", description.ports.metrics),
            )
        ],
        "resources": _resources(description),
        "startupProbe": _probe(description, "ready", -(-description.probes.startup_s // description.probes.period_s)),
        "readinessProbe": _probe(description, "ready", _FAILURES),
        "livenessProbe": _probe(description, "live", 10 * _FAILURES),
        # New connections arrive for as long as the pod's address is known.
        "lifecycle": {"preStop": {"sleep": {"seconds": description.pause_s}}},
        "securityContext": _RIGHTS,
        "volumeMounts": [mount for _, mount in _volumes(description)],
    }
    if not description.pause_s:
        del container["lifecycle"]
    return container


def _probe(description: Description, state: str, failures: int) -> Object:
    return {
        "httpGet": {"path": f"/v2/health/{state}", "port": HTTP, "scheme": scheme(description)},
        "periodSeconds": description.probes.period_s,
        "timeoutSeconds": description.probes.timeout_s,
        "failureThreshold": failures,
    }


def _environment(description: Description) -> Object:
    environment: Object = {}
    if variables := _variables(description):
        environment["env"] = variables
    if description.secrets:
        environment["envFrom"] = [{"secretRef": {"name": name}} for name in description.secrets]
    return environment


def _variables(description: Description) -> list[Object]:
    # In an order of their own, as Helm has them.
    variables: list[Object] = [
        {"name": name, "value": value} for name, value in sorted(description.environment.items())
    ]
    if description.key.secret:
        source = {"secretKeyRef": {"name": description.key.secret, "key": description.key.entry}}
        variables.append({"name": KEY_VARIABLE, "valueFrom": source})
    return variables


def _resources(description: Description) -> Object:
    resources = description.resources
    limits: Object = {"memory": resources.memory}
    if resources.cpu_limit:
        limits["cpu"] = resources.cpu_limit
    if resources.gpus:
        limits["nvidia.com/gpu"] = resources.gpus
    return {"requests": {"cpu": resources.cpu, "memory": resources.memory}, "limits": limits}


def _volumes(description: Description) -> list[tuple[Object, Object]]:
    """Volumes, each with where it is mounted."""
    volumes: list[tuple[Object, Object]] = [_SCRATCH]
    claim = claim_of(description.repository)
    if claim is not None:
        source = {"claimName": claim.name, "readOnly": True}
        mount: Object = {"name": "models", "mountPath": MODELS, "readOnly": True}
        if claim.folder:
            mount["subPath"] = claim.folder
        volumes.append(({"name": "models", "persistentVolumeClaim": source}, mount))
    if description.tls.secret:
        volumes.append(
            (
                {"name": "tls", "secret": {"secretName": description.tls.secret}},
                {"name": "tls", "mountPath": TLS_FOLDER, "readOnly": True},
            )
        )
    if description.resources.shared_memory:
        memory = {"medium": "Memory", "sizeLimit": description.resources.shared_memory}
        volumes.append(
            ({"name": "shared-memory", "emptyDir": memory}, {"name": "shared-memory", "mountPath": "/dev/shm"})
        )
    return volumes


def _nodes(description: Description) -> dict[str, str]:
    kind = description.resources.gpu_type
    return description.node_selector | ({"cloud.google.com/gke-accelerator": kind} if kind else {})


def _tolerations(description: Description) -> list[Object]:
    tolerations: list[Object] = []
    if description.resources.gpus:
        tolerations.append({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})
    for borne in description.tolerations:
        toleration: Object = {"key": borne.key, "operator": borne.operator}
        if borne.value:
            toleration["value"] = borne.value
        if borne.effect:
            toleration["effect"] = borne.effect
        tolerations.append(toleration)
    return tolerations
