"""The predictor of a service: the model, its servers, and the canaries beside it."""

from __future__ import annotations

from typing import Any

from alipes.deploy.kserve.component import pod_fields, resources, scaling_fields, variables
from alipes.deploy.kserve.container import CONTAINER, GRPC_PORT, HTTP_PORT
from alipes.deploy.kserve.description import Canary, KServe
from alipes.deploy.kserve.parts import Batcher, Logger, PayloadLog, Storage
from alipes.deploy.kserve.runtimes import MANY, runtime_name

__all__ = ["canary", "predictor"]

Object = dict[str, Any]

_SPARE_S = 10
"""Seconds for the server's last phase, and for a busy machine."""


def predictor(wanted: KServe) -> Object:
    """The predictor, with what decides how many servers it has."""
    described = wanted.predictor
    spec: Object = {"name": described.name} if described.name else {}
    spec |= scaling_fields(described.scaling, wanted.mode, wanted.name)
    if described.concurrency:
        spec["containerConcurrency"] = described.concurrency
    if described.timeout_s:
        spec["timeout"] = described.timeout_s
    if described.canary_percent is not None:
        spec["canaryTrafficPercent"] = described.canary_percent
    if described.logger is not None:
        spec["logger"] = _logger(described.logger)
    for name, value in (("labels", described.labels), ("annotations", described.annotations)):
        if value:
            spec[name] = dict(value)
    return spec | _pod(wanted) | {"model": _model(wanted)}


def canary(described: Canary, wanted: KServe) -> Object:
    """A canary: the same servers with another model, and a fixed number of them."""
    model = _model(wanted) | {"modelFormat": _format(wanted.predictor.format, described.format_version)}
    for field in ("storageUri", "storage"):
        model.pop(field, None)
    model |= _storage(described.storage)
    # KServe 0.20 requires the name of the container here, and accepts no other than its own.
    model = {"name": CONTAINER, **model}
    if described.arguments:
        model["args"] = [*model.get("args", ()), *described.arguments]
    spec: Object = {"name": described.name, "minReplicas": described.replicas or 1}
    return {"trafficPercent": described.percent, "predictor": spec | _pod(wanted) | {"model": model}}


def _pod(wanted: KServe) -> Object:
    spec = pod_fields(wanted, wanted.predictor.resources)
    if wanted.mode == "Standard":  # Knative sets it by the timeout of requests
        spec["terminationGracePeriodSeconds"] = wanted.pause_s + wanted.exit_timeout_s + _SPARE_S
    if size := wanted.predictor.resources.shared_memory:
        memory = {"medium": "Memory", "sizeLimit": size}
        spec["volumes"] = [{"name": "shared-memory", "emptyDir": memory}]
    return spec


def _model(wanted: KServe) -> Object:
    described = wanted.predictor
    suffix = MANY if wanted.models.items else described.format
    model: Object = {
        "modelFormat": _format(described.format, described.format_version),
        "runtime": described.runtime or runtime_name(wanted, suffix),
    }
    if described.protocol:
        model["protocolVersion"] = described.protocol
    model |= _storage(described.storage)
    batched = _batcher(described.batcher) if described.batcher is not None else []
    logged = _payload_log(described.payload_log) if described.payload_log is not None else []
    if arguments := [*batched, *logged, *described.arguments]:
        model["args"] = arguments
    if described.environment:
        model["env"] = variables(described.environment)
    if wanted.mode == "Knative":  # it takes one port, and speaks HTTP/2 where that has this name
        is_grpc = described.protocol == "grpc-v2"
        name, port = ("h2c", GRPC_PORT) if is_grpc else ("http1", HTTP_PORT)
        model["ports"] = [{"name": name, "containerPort": port, "protocol": "TCP"}]
    model["resources"] = resources(described.resources)
    if described.resources.shared_memory:
        model["volumeMounts"] = [{"name": "shared-memory", "mountPath": "/dev/shm"}]
    return model


def _format(name: str, version: str) -> Object:
    return {"name": name} | ({"version": version} if version else {})


def _storage(storage: Storage) -> Object:
    if storage.uri:
        return {"storageUri": storage.uri}
    fields = {"key": storage.key, "path": storage.path, "parameters": dict(storage.parameters)}
    found = {name: value for name, value in fields.items() if value}
    return {"storage": found} if found else {}


def _batcher(batcher: Batcher) -> list[str]:
    return [
        f"--backend-config=default-max-batch-size={batcher.max_batch_size}",
        f"--backend-config=default-max-queue-delay-microseconds={1000 * batcher.max_latency_ms}",
    ]


def _payload_log(log: PayloadLog) -> list[str]:
    flags = [f"--payload-log-url={log.url}", f"--payload-log-mode={log.mode}", f"--payload-log-sample={log.sample:g}"]
    if log.format != "json":
        flags.append(f"--payload-log-format={log.format}")
    if log.batch_size:
        flags.append(f"--payload-log-batch-size={log.batch_size}")
    if log.batch_interval_s:
        flags.append(f"--payload-log-batch-interval={log.batch_interval_s:g}")
    flags += [f"--payload-log-header={name}" for name in log.headers]
    return flags + [f"--payload-log-redact={name}" for name in log.redacted]


def _logger(logger: Logger) -> Object:
    spec: Object = {"mode": logger.mode}
    if logger.url:
        spec["url"] = logger.url
    if logger.headers:
        spec["metadataHeaders"] = list(logger.headers)
    if logger.annotations:
        spec["metadataAnnotations"] = list(logger.annotations)
    if logger.storage is not None:
        place = logger.storage
        spec["storage"] = {"key": place.key, "path": place.path, "parameters": dict(place.parameters)}
        if place.account:
            spec["storage"]["serviceAccountName"] = place.account
    if logger.batch_size:
        spec["batchSize"] = logger.batch_size
    if logger.batch_interval:
        spec["batchInterval"] = logger.batch_interval
    return spec
