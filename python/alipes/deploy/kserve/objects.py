"""All objects of a deployment on KServe, in the order in which they are best sent."""

from __future__ import annotations

from typing import Any

from alipes.deploy.kserve.component import account_name, component, scaling_annotations
from alipes.deploy.kserve.description import Graph, KServe, Model, Step
from alipes.deploy.kserve.metadata import GROUP, metadata
from alipes.deploy.kserve.placement import placed
from alipes.deploy.kserve.predictor import canary, predictor
from alipes.deploy.kserve.runtimes import runtimes
from alipes.deploy.quantities import bytes_of

__all__ = ["kserve_objects"]

Object = dict[str, Any]


def kserve_objects(wanted: KServe) -> list[Object]:
    """The objects, without those that the description does without."""
    written = [*runtimes(wanted), *_account(wanted), *_cache(wanted)]
    if wanted.models.items:
        numbers = placed(wanted.models, bytes_of(wanted.predictor.resources.memory) - bytes_of(wanted.models.reserve))
        shards = sorted({number for number in numbers if number is not None})
        written += [_service(wanted, _shard_name(wanted, number)) for number in shards]
        written += [
            _trained_model(wanted, model, _shard_name(wanted, number))
            for model, number in zip(wanted.models.items, numbers, strict=True)
            if number is not None
        ]
    else:
        written.append(_service(wanted, wanted.name))
    return [*written, *(_graph(wanted, graph) for graph in wanted.graphs)]


def _shard_name(wanted: KServe, number: int) -> str:
    return f"{wanted.name}-{number}"


def _service(wanted: KServe, name: str) -> Object:
    head = metadata(wanted, name)
    head["annotations"] = wanted.annotations | {
        f"{GROUP}/deploymentMode": wanted.mode,
        **scaling_annotations(wanted.predictor.scaling, wanted.mode),
    }
    if wanted.scrape:
        head["annotations"][f"{GROUP}/enable-prometheus-scraping"] = "true"
    spec: Object = {"predictor": predictor(wanted)}
    if wanted.canaries:
        spec["canary"] = [canary(one, wanted) for one in wanted.canaries]
    if wanted.transformer is not None:
        spec["transformer"] = component(wanted.transformer, wanted)
    if wanted.explainer is not None:
        spec["explainer"] = component(wanted.explainer, wanted)
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": "InferenceService", "metadata": head, "spec": spec}


def _trained_model(wanted: KServe, model: Model, service: str) -> Object:
    spec = {
        "inferenceService": service,
        "model": {"storageUri": model.uri, "framework": model.format, "memory": model.memory},
    }
    head = metadata(wanted, model.name)
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "TrainedModel", "metadata": head, "spec": spec}


def _account(wanted: KServe) -> list[Object]:
    """The service account, where it is made."""
    account = wanted.account
    if not account.secrets and not account.annotations:
        return []
    head = metadata(wanted, account_name(wanted))
    if account.annotations:
        head["annotations"] = dict(account.annotations)
    made: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": head}
    if account.secrets:
        made["secrets"] = [{"name": name} for name in account.secrets]
    return [made]


def _cache(wanted: KServe) -> list[Object]:
    """The copies of the model on nodes."""
    cache = wanted.cache
    if cache is None:
        return []
    kind = "LocalModelCache" if cache.whole_cluster else "LocalModelNamespaceCache"
    spec: Object = {
        "sourceModelUri": wanted.predictor.storage.uri,
        "modelSize": cache.size,
        "nodeGroups": list(cache.node_groups),
    }
    if account := account_name(wanted):
        spec["serviceAccountName"] = account
    head = metadata(wanted, wanted.name)
    return [{"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": head, "spec": spec}]


def _graph(wanted: KServe, graph: Graph) -> Object:
    spec: Object = {
        "nodes": {
            name: {"routerType": router.kind, "steps": [_step(step) for step in router.steps]}
            for name, router in graph.nodes.items()
        },
        "minReplicas": graph.least,
    }
    if graph.most:
        spec["maxReplicas"] = graph.most
    if graph.timeout_s:
        spec["timeout"] = graph.timeout_s
    head = metadata(wanted, graph.name)
    head["annotations"] = {f"{GROUP}/deploymentMode": wanted.mode}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "InferenceGraph", "metadata": head, "spec": spec}


def _step(step: Step) -> Object:
    fields = {
        "name": step.name,
        "serviceName": step.service,
        "nodeName": step.node,
        "serviceUrl": step.url,
        "data": step.data,
        "condition": step.condition,
        "dependency": step.dependency,
        "mapPredictionsToInstances": step.map_predictions,
    }
    found: Object = {name: value for name, value in fields.items() if value}
    return found | ({} if step.weight is None else {"weight": step.weight})
