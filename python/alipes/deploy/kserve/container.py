"""The container in which KServe runs our server: its ports, its probes, and what it may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from alipes.deploy.kserve.description import KServe

__all__ = ["CONTAINER", "GRPC_PORT", "HTTP_PORT", "METRICS_PORT", "server_container"]

Object = dict[str, Any]

CONTAINER: Final = "kserve-container"
"""The name by which KServe knows the container of the server."""
HTTP_PORT: Final = 8080
"""The port that KServe's agent and its probes assume."""
GRPC_PORT: Final = 9000
METRICS_PORT: Final = 8002
_FAILURES: Final = 3
"""Questions without an answer after which a server counts as not ready; as dead after ten times as many."""


def server_container(wanted: KServe, image: str, served: Sequence[str]) -> Object:
    """The container.

    Args:
        wanted: What is deployed.
        image: Its image.
        served: The arguments that say what it serves.
    """
    container: Object = {
        "name": CONTAINER,
        "image": image,
        "command": ["alipes", "serve"],
        "args": [
            *served,
            f"--http-port={HTTP_PORT}",
            f"--grpc-port={GRPC_PORT}",
            f"--metrics-port={METRICS_PORT}",
            f"--exit-timeout-secs={wanted.exit_timeout_s}",
        ],
        "startupProbe": _probe(wanted, "ready", -(-wanted.probes.startup_s // wanted.probes.period_s)),
        "readinessProbe": _probe(wanted, "ready", _FAILURES),
        "livenessProbe": _probe(wanted, "live", 10 * _FAILURES),
        "securityContext": {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
    }
    if wanted.mode == "Standard":  # Knative has one port, which the service names, and its own way to stop
        container["ports"] = [
            {"name": name, "containerPort": port, "protocol": "TCP"}
            for name, port in (("http1", HTTP_PORT), ("grpc", GRPC_PORT), ("metrics", METRICS_PORT))
        ]
        if wanted.pause_s:
            container["lifecycle"] = {"preStop": {"sleep": {"seconds": wanted.pause_s}}}
    return container


def _probe(wanted: KServe, state: str, failures: int) -> Object:
    return {
        "httpGet": {"path": f"/v2/health/{state}", "port": HTTP_PORT},
        "periodSeconds": wanted.probes.period_s,
        "timeoutSeconds": wanted.probes.timeout_s,
        "failureThreshold": failures,
    }
