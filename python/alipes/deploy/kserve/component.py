"""What predictors, transformers and explainers have in common: scaling, resources, nodes."""

from __future__ import annotations

from typing import Any, Final

from alipes.deploy.description import Resources
from alipes.deploy.kserve.container import CONTAINER, GRPC_PORT, HTTP_PORT, server_container
from alipes.deploy.kserve.description import KServe
from alipes.deploy.kserve.faults import METRICS, scaler_of
from alipes.deploy.kserve.parts import Component, Scaling
from alipes.deploy.kubernetes.scaling import CONCURRENCY, LONGEST_WAIT, PENDING

__all__ = ["account_name", "component", "pod_fields", "resources", "scaling_annotations", "scaling_fields", "variables"]

Object = dict[str, Any]

_SERVICE_LABEL: Final = "serving_kserve_io_inferenceservice"
"""KServe's label of pods, as Prometheus writes it."""


def component(described: Component, wanted: KServe) -> Object:
    """A transformer or an explainer."""
    container = _app_container(described, wanted) if described.app else _own_container(described)
    if described.environment:
        container["env"] = variables(described.environment)
    container["resources"] = resources(described.resources)
    spec = scaling_fields(described.scaling, wanted.mode, wanted.name)
    if described.timeout_s:
        spec["timeout"] = described.timeout_s
    pod = pod_fields(wanted, described.resources) | {"containers": [container]}
    if described.app:
        pod["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    return spec | pod


def _own_container(described: Component) -> Object:
    """A container that starts by itself."""
    container: Object = {"name": CONTAINER, "image": described.image}
    return container | ({"args": list(described.arguments)} if described.arguments else {})


def _app_container(described: Component, wanted: KServe) -> Object:
    """A container in which `alipes serve` runs an app. KServe adds the model's name behind the arguments.

    Without Knative the predictor has a port for gRPC; with it, KServe adds the predictor's only address.
    """
    served = [described.app]
    if wanted.mode == "Standard":
        served += [f"--predictor_host={wanted.name}-predictor:{GRPC_PORT}", "--predictor_protocol=grpc-v2"]
    elif wanted.predictor.protocol == "grpc-v2":
        served.append("--predictor_protocol=grpc-v2")
    container = server_container(wanted, described.image, [*served, *described.arguments])
    if wanted.mode == "Knative":
        container["ports"] = [{"name": "http1", "containerPort": HTTP_PORT, "protocol": "TCP"}]
    return container


def scaling_annotations(scaling: Scaling, mode: str) -> dict[str, str]:
    """What says which scaler decides; with Knative it is its own."""
    return {} if mode == "Knative" else {"serving.kserve.io/autoscalerClass": scaler_of(scaling, mode)}


def scaling_fields(scaling: Scaling, mode: str, service: str) -> Object:
    """How many there are, and what decides."""
    kind = scaler_of(scaling, mode)
    spec: Object = {"minReplicas": scaling.least}
    if most := scaling.most or (0 if kind == "kpa" else max(scaling.least, 1)):
        spec["maxReplicas"] = most
    if kind == "keda":
        return spec | {"autoScaling": {"metrics": [_keda_metric(scaling, service)]}}
    if scaling.metric:
        spec["scaleMetric"] = scaling.metric
    if scaling.target:
        spec["scaleTarget"] = scaling.target
    return spec


def _keda_metric(scaling: Scaling, service: str) -> Object:
    metric = scaling.metric or METRICS["keda"][0]
    if metric in {"cpu", "memory"}:
        target: Object = {"type": "Utilization", "averageUtilization": scaling.target}
        return {"type": "Resource", "resource": {"name": metric, "target": target}}
    of_service = f'{{{_SERVICE_LABEL}="{service}"}}'
    wait = f"{LONGEST_WAIT}{of_service}"
    queries = {
        "concurrency": f"sum({CONCURRENCY}{of_service})",
        # KEDA divides what it gets among the servers.
        "wait": f"max({wait}) * count(count by (instance) ({wait}))",
    }
    source = {
        "backend": "prometheus",
        "serverAddress": scaling.prometheus,
        "query": queries.get(metric) or scaling.query or f"sum({PENDING}{of_service})",
    }
    target = {"type": "Value", "value": str(scaling.target)}
    return {"type": "External", "external": {"metric": source, "target": target}}


def resources(described: Resources) -> Object:
    """What a container gets of its machine."""
    limits: Object = {"memory": described.memory}
    if described.cpu_limit:
        limits["cpu"] = described.cpu_limit
    if described.gpus:
        limits["nvidia.com/gpu"] = described.gpus
    return {"requests": {"cpu": described.cpu, "memory": described.memory}, "limits": limits}


def variables(environment: dict[str, str]) -> list[Object]:
    """Variables of a container."""
    return [{"name": name, "value": value} for name, value in environment.items()]


def account_name(wanted: KServe) -> str:
    """The service account of pods: one that is made, one that is there, or the namespace's own."""
    account = wanted.account
    return wanted.name if account.secrets or account.annotations else account.name


def pod_fields(wanted: KServe, described: Resources) -> Object:
    """Which nodes a pod may be on, and what it may read."""
    spec: Object = {}
    if account := account_name(wanted):
        spec["serviceAccountName"] = account
    nodes = dict(wanted.nodes.selector)
    if described.gpus and described.gpu_type:
        nodes["cloud.google.com/gke-accelerator"] = described.gpu_type
    if nodes:
        spec["nodeSelector"] = nodes
    if wanted.nodes.affinity:
        spec["affinity"] = {"nodeAffinity": _affinity(wanted.nodes.affinity)}
    if borne := _tolerations(wanted, described):
        spec["tolerations"] = borne
    return spec


def _affinity(labels: dict[str, tuple[str, ...]]) -> Object:
    expressions = [{"key": key, "operator": "In", "values": list(values)} for key, values in labels.items()]
    terms = [{"matchExpressions": expressions}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _tolerations(wanted: KServe, described: Resources) -> list[Object]:
    borne: list[Object] = []
    if described.gpus:
        borne.append({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})
    for one in wanted.nodes.tolerations:
        fields = {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}
        borne.append({name: value for name, value in fields.items() if value})
    return borne
