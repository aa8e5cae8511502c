"""Twenty descriptions that differ in everything that a description can say."""

from __future__ import annotations

from typing import Any, Final

VALUE_SETS: Final[dict[str, dict[str, Any]]] = {
    "nothing": {},
    "image": {"name": "models", "image": "registry.example.org:5000/team/models@sha256:" + "0" * 64},
    "replicas": {"replicas": 3, "unavailable": 2, "pullPolicy": "Always"},
    "none": {"replicas": 0},
    "streams": {"streams": True, "replicas": 4},
    "volume": {"repository": "pvc://models"},
    "folder of a volume": {"repository": "pvc://models/of/2026/"},
    "bucket": {"repository": "gs://bucket/models", "serviceAccount": "reader"},
    "secrets": {"repository": "s3://bucket/models", "secrets": ["keys", "more"], "pullSecrets": ["registry"]},
    "environment": {"environment": {"ANSWER": "42", "TEXT": "two words, a \"quote\" and 'another'", "EMPTY": ""}},
    "arguments": {"arguments": ["--log-verbose=1", "--model-control-mode=poll", "--load-model=a b", "--x={{y}}: #"]},
    "resources": {"resources": {"cpu": "500m", "memory": "1.5Gi", "cpuLimit": "4", "sharedMemory": "256Mi"}},
    "gpus": {
        "resources": {"gpus": 4, "gpuType": "nvidia-l4"},
        "nodeSelector": {"disk": "ssd", "zone": "7"},
        "tolerations": [{"key": "team"}, {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}],
    },
    "encrypted": {"tls": {"secret": "certificate"}, "ports": {"http": 8443, "grpc": 8444, "metrics": 9000}},
    "key": {"key": {"secret": "keys", "entry": "value", "open": ["health"]}},
    "times": {
        "pauseS": 0,
        "exitTimeoutS": 3600,
        "probes": {"startupS": 7, "periodS": 2, "timeoutS": 1},
    },
    "hpa": {"scaling": {"kind": "hpa", "least": 2, "most": 5, "cpuPercent": 0, "pendingRequests": 8}},
    "both metrics, streams": {"streams": True, "scaling": {"kind": "hpa", "cpuPercent": 60, "pendingRequests": 3}},
    "keda": {"scaling": {"kind": "keda", "pendingRequests": 4, "prometheus": "http://p:9090"}, "replicas": 7},
    "hpa, requests": {"scaling": {"kind": "hpa", "cpuPercent": 0, "concurrency": 6, "waitMs": 1500}},
    "keda, requests": {"scaling": {"kind": "keda", "cpuPercent": 0, "concurrency": 6, "waitMs": 250}},
    "network": {
        "network": {"restricted": True, "namespaces": ["monitoring", "1234"]},
        "service": {"type": "LoadBalancer", "annotations": {"load-balancer": "internal"}},
        "labels": {"team": "waves", "app.kubernetes.io/part-of": "search"},
        "annotations": {"note": "a: b"},
        "scrape": False,
    },
}
