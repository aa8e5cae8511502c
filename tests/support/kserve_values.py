"""Descriptions of deployments on KServe: those that it takes, and those that are refused before it is asked."""

from __future__ import annotations

import base64
from typing import Any, Final

IRIS: Final = {"format": "sklearn", "storage": {"uri": "gs://bucket/iris"}}

VALUE_SETS: Final[dict[str, dict[str, Any]]] = {
    "one model": {"predictor": IRIS},
    "repository": {"predictor": {"format": "triton", "formatVersion": "2", "storage": {"uri": "pvc://claim/models"}}},
    "storage of a secret": {
        "predictor": {
            "format": "onnx",
            "storage": {"key": "minio", "path": "models/onnx", "parameters": {"bucket": "team"}},
            "protocol": "v2",
        },
    },
    "gpus": {
        "image": "registry.example.org:5000/team/alipes@sha256:" + "0" * 64,
        "predictor": {
            "format": "pytorch",
            "storage": {"uri": "hf://owner/model"},
            "resources": {"gpus": 2, "gpuType": "nvidia-l4", "cpuLimit": "4", "sharedMemory": "1Gi"},
            "arguments": ["--log-verbose=1"],
            "environment": {"ANSWER": "42"},
            "labels": {"team": "waves"},
        },
        "nodes": {
            "selector": {"disk": "ssd"},
            "affinity": {"topology.kubernetes.io/zone": ["a", "b"]},
            "tolerations": [{"key": "team"}, {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}],
        },
        "pullSecrets": ["registry"],
    },
    "secrets": {"predictor": IRIS, "account": {"secrets": ["keys"], "annotations": {"cloud": "reader"}}},
    "account": {
        "predictor": IRIS,
        "account": {"name": "reader"},
        "scrape": False,
        "labels": {"team": "waves"},
        "annotations": {"serving.kserve.io/enable-tag-routing": "true"},
    },
    "hpa": {"predictor": IRIS | {"scaling": {"least": 2, "most": 5, "metric": "memory", "target": 70}}},
    "keda": {"predictor": IRIS | {"scaling": {"kind": "keda", "least": 0, "most": 4, "target": 8}}},
    "keda, processors": {"predictor": IRIS | {"scaling": {"kind": "keda", "metric": "cpu", "target": 60}}},
    "keda, requests": {"predictor": IRIS | {"scaling": {"kind": "keda", "metric": "concurrency", "target": 6}}},
    "keda, longest wait": {"predictor": IRIS | {"scaling": {"kind": "keda", "metric": "wait", "target": 2}}},
    "no scaler": {"predictor": IRIS | {"scaling": {"kind": "none", "least": 3}}},
    "external": {"predictor": IRIS | {"scaling": {"kind": "external"}, "timeoutS": 30}},
    "canaries": {
        "predictor": IRIS | {"scaling": {"least": 2, "most": 4}},
        "canaries": [
            {"name": "next", "percent": 10, "storage": {"uri": "gs://bucket/iris-2"}, "replicas": 2},
            {"name": "dark", "percent": 0, "storage": {"uri": "s3://bucket/iris-3"}, "arguments": ["--x=1"]},
        ],
    },
    "canary of a secret": {
        "predictor": {"format": "onnx", "storage": {"key": "minio", "path": "models/1"}},
        "canaries": [{"name": "next", "percent": 10, "storage": {"key": "minio", "path": "models/2"}}],
    },
    "promoted": {"predictor": IRIS | {"name": "next"}},
    "knative": {
        "mode": "Knative",
        "predictor": IRIS
        | {
            "scaling": {"least": 0, "most": 10, "metric": "concurrency", "target": 5},
            "concurrency": 5,
            "timeoutS": 60,
            "canaryPercent": 10,
            "annotations": {"autoscaling.knative.dev/window": "30s"},
        },
    },
    "knative, grpc": {"mode": "Knative", "predictor": IRIS | {"protocol": "grpc-v2", "scaling": {"metric": "rps"}}},
    "batcher": {"predictor": IRIS | {"batcher": {"maxBatchSize": 16, "maxLatencyMs": 20}}},
    "logger": {
        "predictor": IRIS
        | {"logger": {"url": "http://sink", "mode": "request", "headers": ["x-team"], "annotations": ["team"]}}
    },
    "payload log": {
        "predictor": IRIS
        | {"payloadLog": {"url": "http://sink/", "sample": 0.01, "headers": ["x-team"], "redacted": ["name"]}}
    },
    "payload log of files": {
        "predictor": IRIS
        | {"payloadLog": {"url": "s3://logs/iris", "format": "parquet", "batchSize": 500, "batchIntervalS": 60}}
    },
    "logger of files": {
        "predictor": IRIS
        | {
            "logger": {
                "storage": {"key": "minio", "path": "/logs", "parameters": {"type": "s3", "format": "parquet"}},
                "batchSize": 100,
                "batchInterval": "5s",
            }
        }
    },
    "transformer and explainer": {
        "predictor": IRIS,
        "transformer": {"image": "transformer:1", "arguments": ["--x"], "environment": {"A": "1"}, "timeoutS": 9},
        "explainer": {"image": "explainer:1", "scaling": {"least": 1, "most": 2}},
    },
    "transformer and explainer as apps": {
        "predictor": IRIS,
        "transformer": {"image": "apps:1", "app": "/app/transformer.py", "environment": {"A": "1"}},
        "explainer": {"image": "apps:1", "app": "/app/explainer.py", "arguments": ["--enable_predictor_health_check"]},
    },
    "apps with knative": {
        "mode": "Knative",
        "predictor": IRIS | {"protocol": "grpc-v2"},
        "transformer": {"image": "apps:1", "app": "/app/transformer.py", "scaling": {"least": 0}},
    },
    "cache": {"predictor": IRIS, "cache": {"size": "2Gi", "nodeGroups": ["gpus"]}},
    "cache of the cluster": {"predictor": IRIS, "cache": {"size": "2G", "nodeGroups": ["a"], "wholeCluster": True}},
    "many models": {
        "predictor": {"format": "onnx", "resources": {"memory": "2Gi"}},
        "models": {
            "reserve": "1Gi",
            "items": [
                {"name": "first", "uri": "s3://bucket/a", "memory": "700Mi"},
                {"name": "second", "uri": "gs://bucket/b", "memory": "700Mi", "format": "sklearn"},
                {"name": "third", "uri": "https://host/c.zip", "memory": "300Mi"},
            ],
        },
    },
    "graphs": {
        "predictor": IRIS,
        "graphs": [
            {
                "name": "chain",
                "timeoutS": 20,
                "most": 3,
                "nodes": {
                    "root": {
                        "kind": "Sequence",
                        "steps": [
                            {"name": "clean", "service": "clean"},
                            {"node": "halves", "data": "$response", "condition": "[@this].#(ok==1)"},
                        ],
                    },
                    "halves": {
                        "kind": "Splitter",
                        "steps": [{"service": "iris", "weight": 20}, {"node": "all", "weight": 80}],
                    },
                    "all": {
                        "kind": "Ensemble",
                        "steps": [
                            {"name": "a", "service": "iris", "dependency": "Hard"},
                            {"name": "b", "url": "http://other/v1/models/b:predict"},
                        ],
                    },
                },
            },
            {
                "name": "choice",
                "nodes": {
                    "root": {"kind": "Switch", "steps": [{"service": "iris", "condition": "[@this].#(kind==1)"}]}
                },
            },
        ],
    },
    "runtimes": {
        "predictor": IRIS | {"runtime": "mine-sklearn"},
        "runtimes": {"name": "mine", "scope": "namespace", "formats": ["sklearn"], "chosen": False},
        "pauseS": 0,
        "probes": {"startupS": 7, "periodS": 2, "timeoutS": 1},
    },
    "no runtimes": {"predictor": IRIS, "runtimes": {"written": False}},
}
"""What KServe takes; `runtimes` of the last one are those of the others."""


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SECRETS: Final[list[dict[str, Any]]] = [
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "storage-config"},
        "data": {"minio": _encoded('{"type": "s3", "access_key_id": "a", "secret_access_key": "b", "bucket": "m"}')},
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys"},
        "data": {"AWS_ACCESS_KEY_ID": _encoded("a"), "AWS_SECRET_ACCESS_KEY": _encoded("b")},
    },
]
"""Secrets that the descriptions name, which people make."""

STEP: Final = {"service": "iris"}


def _graph(**nodes: Any) -> dict[str, Any]:
    return {"predictor": IRIS, "graphs": [{"name": "graph", "nodes": nodes}]}


def _models(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"predictor": {"format": "onnx", "resources": {"memory": "1Gi"}}, "models": {"items": items, **fields}}


def _canaries(*canaries: dict[str, Any], **predictor: Any) -> dict[str, Any]:
    each = [{"name": "next", "percent": 10, "storage": {"uri": "gs://bucket/2"}, **canary} for canary in canaries]
    return {"predictor": IRIS | predictor, "canaries": each}


def _scaling(mode: str, **scaling: Any) -> dict[str, Any]:
    return {"mode": mode, "predictor": IRIS | {"scaling": scaling}}


REFUSED: Final[dict[str, tuple[dict[str, Any], str, str]]] = {
    "canary of Knative in Standard mode": (
        {"predictor": IRIS | {"canaryPercent": 10}},
        "predictor.canaryPercent: revisions are Knative's: in Standard mode, describe `canaries`",
        "",
    ),
    "canaries with Knative": (
        {"mode": "Knative", **_canaries({})},
        "canaries: KServe has them in Standard mode; with Knative, say `predictor.canaryPercent`",
        "canary is only supported in Standard deployment mode",
    ),
    "more than all requests": (
        _canaries({"percent": 60}, {"name": "dark", "percent": 50}),
        "canaries: they get 110 of 100 requests",
        "must be <= 100",
    ),
    "canaries of one name": (
        _canaries({}, {}),
        "canaries[1].name: 'next' is the name of another canary",
        '"next" is duplicated',
    ),
    "a canary named as the predictor": (
        _canaries({}, name="next"),
        "canaries[0].name: 'next' is the name of the predictor",
        "conflicts with stable predictor name",
    ),
    "a canary with more servers": (
        _canaries({"replicas": 3}),
        "canaries[0].replicas: 3 are more than the 1 of the predictor",
        "must not exceed stable predictor minReplicas",
    ),
    "a canary of another form of storage": (
        _canaries({"storage": {"key": "minio", "path": "iris-2"}}),
        "canaries[0].storage: KServe 0.20 takes `uri` or `path` for all predictors of a service alike",
        "must provide only one of storageUri and storage.path",
    ),
    "concurrency in Standard mode": (
        {"predictor": IRIS | {"concurrency": 5}},
        "predictor.concurrency: Knative limits requests in flight; in Standard mode nothing would",
        "",
    ),
    "more at least than at most": (
        _scaling("Standard", least=4, most=2),
        "predictor.scaling: at least 4 and at most 2 servers",
        "'MinReplicas' cannot be greater than MaxReplicas",
    ),
    "requests a second with hpa": (
        _scaling("Standard", metric="rps"),
        "predictor.scaling.metric: 'hpa' looks at cpu, memory, not at 'rps'",
        "[rps] is not a supported metric",
    ),
    "processors with kpa": (
        _scaling("Knative", metric="cpu"),
        "predictor.scaling.metric: 'kpa' looks at concurrency, rps, not at 'cpu'",
        "[cpu] is not a supported metric",
    ),
    "more than all processors": (
        _scaling("Standard", metric="cpu", target=120),
        "predictor.scaling.target: cpu is a percentage, at most 100",
        "should be a [1-100] integer",
    ),
    "no server with hpa": (
        _scaling("Standard", least=0),
        "predictor.scaling.least: 'hpa' does not bring back a server where none is: only kpa and keda do",
        "",
    ),
    "keda with Knative": (
        _scaling("Knative", kind="keda", target=1),
        "predictor.scaling.kind: in Knative mode there is kpa, not 'keda'",
        "",
    ),
    "keda at no value": (
        _scaling("Standard", kind="keda"),
        "predictor.scaling.target: say at which value keda adds servers",
        "",
    ),
    "a storage of this machine": (
        {"predictor": {"storage": {"uri": "./models"}}},
        "predictor.storage.uri: KServe fetches from gs://, s3://, pvc://, file://, https://, http://, hdfs://, "
        "webhdfs://, oci://, oci+native://, hf://, not from './models'",
        "",
    ),
    "a storage that nobody knows": (
        {"predictor": {"storage": {"uri": "ftp://host/models"}}},
        "predictor.storage.uri: KServe fetches from gs://, s3://, pvc://, file://, https://, http://, hdfs://, "
        "webhdfs://, oci://, oci+native://, hf://, not from 'ftp://host/models'",
        "is not supported",
    ),
    "two storages": (
        {"predictor": {"storage": {"uri": "s3://a/b", "path": "c"}}},
        "predictor.storage: say `uri`, or `key` and `path`, not both",
        "",
    ),
    "no storage": (
        {"predictor": {"format": "onnx"}},
        "predictor.storage: say where the model is: `uri`, or `key` and `path`",
        "",
    ),
    "a format without a runtime": (
        {"predictor": IRIS, "runtimes": {"formats": ["onnx"]}},
        "predictor.format: runtimes.formats has no runtime of 'sklearn'",
        "No ServingRuntimes or ClusterServingRuntimes with the name: alipes-sklearn",
    ),
    "a logger to nowhere": (
        {"predictor": IRIS | {"logger": {}}},
        "predictor.logger: say `url` or `storage`",
        "",
    ),
    "a graph without a beginning": (
        _graph(start={"kind": "Sequence", "steps": [STEP]}),
        "graphs[0].nodes: requests begin at 'root', which is missing",
        "root node not found",
    ),
    "a step to two places": (
        _graph(root={"kind": "Sequence", "steps": [STEP | {"url": "http://a"}]}),
        "graphs[0].nodes.root.steps[0]: say one of `service`, `node` and `url`",
        "specifies more than one of",
    ),
    "a step to no place": (
        _graph(root={"kind": "Sequence", "steps": [{}]}),
        "graphs[0].nodes.root.steps[0]: say one of `service`, `node` and `url`",
        "does not specify an inference target",
    ),
    "a step to no router": (
        _graph(root={"kind": "Sequence", "steps": [{"node": "other"}]}),
        "graphs[0].nodes.root.steps[0].node: there is no router 'other'",
        "",
    ),
    "weights of less than all": (
        _graph(root={"kind": "Splitter", "steps": [STEP | {"weight": 20}, STEP | {"weight": 70}]}),
        "graphs[0].nodes.root: the weights are 90 together, not 100",
        "should be 100",
    ),
    "a step without a weight": (
        _graph(root={"kind": "Splitter", "steps": [STEP]}),
        "graphs[0].nodes.root.steps[0].weight: each step of a Splitter has one",
        "missing the 'Weight'",
    ),
    "a weight in a sequence": (
        _graph(root={"kind": "Sequence", "steps": [STEP | {"weight": 100}]}),
        "graphs[0].nodes.root.steps[0].weight: a Sequence sends all requests: only a Splitter has weights",
        "",
    ),
    "a switch without a condition": (
        _graph(root={"kind": "Switch", "steps": [STEP]}),
        "graphs[0].nodes.root.steps[0].condition: each step of a Switch has one",
        "",
    ),
    "steps of one name": (
        _graph(root={"kind": "Ensemble", "steps": [STEP | {"name": "a"}, STEP | {"name": "a"}]}),
        "graphs[0].nodes.root: two steps have the name 'a'",
        "contains more than one step with name",
    ),
    "a graph that goes round": (
        _graph(
            root={"kind": "Sequence", "steps": [{"node": "a"}]},
            a={"kind": "Sequence", "steps": [{"node": "b"}]},
            b={"kind": "Ensemble", "steps": [STEP, {"node": "a"}]},
        ),
        "graphs[0].nodes.a: requests would go round: a → b → a",
        "",
    ),
    "models of one name": (
        _models(*[{"name": "a", "uri": "s3://a/a", "memory": "1Mi"}] * 2),
        "models.items[1].name: 'a' is the name of another model",
        'trainedmodels.serving.kserve.io "a" already exists',
    ),
    "a model too large": (
        _models({"name": "a", "uri": "s3://a/a", "memory": "600Mi"}),
        "models.items[0].memory: 600Mi is more than the 536870912 bytes that a server has for models",
        "",
    ),
    "more models than room": (
        _models(*[{"name": name, "uri": "s3://a/a", "memory": "500Mi"} for name in "ab"], shards=1),
        "models.items[1].memory: all 1 services of `shards` are full",
        "",
    ),
    "a model in a volume": (
        _models({"name": "a", "uri": "pvc://a/a", "memory": "1Mi"}),
        "models.items[0].uri: KServe's agent fetches from s3://, gs://, https://, http://, not 'pvc://a/a'",
        "storageUri field is invalid",
    ),
    "one model and many": (
        {"predictor": IRIS, "models": {"items": [{"name": "a", "uri": "s3://a/a", "memory": "1Mi"}]}},
        "predictor.storage: a service has one model or, in `models`, many",
        "",
    ),
    "an account that is there and made": (
        {"predictor": IRIS, "account": {"name": "reader", "secrets": ["keys"]}},
        "account: an account that is there is named; one with `secrets` or `annotations` is made",
        "",
    ),
    "a copy of no address": (
        {"predictor": {"storage": {"path": "a"}}, "cache": {"size": "1Gi", "nodeGroups": ["a"]}},
        "cache: a model is copied from its `predictor.storage.uri`",
        "",
    ),
}
"""What is refused: values, our message, and some words of KServe's where it refuses the same."""
