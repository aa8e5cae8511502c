"""The rows of `alipes help`: by which words people look for a topic or a command."""

from __future__ import annotations

from typing import Final

from alipes.synonyms.synonym import Synonym

__all__ = ["TOPICS"]

TOPICS: Final = (
    Synonym(
        "chain chaining ensemble ensembles pipeline pipelines preprocess preprocessing postprocess postprocessing "
        "transformer transformers predictor steps before after dag inferencegraph composition bls",
        meant="alipes help chains",
    ),
    Synonym("auth authentication authorization api-key api-keys key token tokens password", meant="alipes help keys"),
    Synonym("ssl https security secure encryption certificate certificates cert certs mtls", meant="alipes help tls"),
    Synonym(
        "docker container containers podman kubernetes k8s docker-compose compose systemd deployment deploying helm "
        "cloud aws gcp azure production image",
        meant="alipes help deploy",
    ),
    Synonym("kserve knative", meant="alipes help deploy kserve"),
    Synonym(
        "metrics metric logs log logging slow grafana prometheus dashboards performance latency trace traces tracing "
        "statistics debug debugging observability profiling monitored",
        meant="alipes help monitoring",
    ),
    Synonym("timeout time-out time-outs deadline deadlines limits", meant="alipes help timeouts"),
    Synonym(
        "onnx model file format formats tensorrt openvino xgboost lightgbm catboost mlflow pickle joblib folder "
        "folders repository layout config-pbtxt backend backends",
        meant="alipes help files",
    ),
    Synonym("scikit-learn scikit sk-learn", meant="alipes help sklearn"),
    Synonym("torch torchscript safetensors", meant="alipes help pytorch"),
    Synonym("keras savedmodel tf", meant="alipes help tensorflow"),
    Synonym("gpu cuda device devices nvidia", meant="alipes help gpus"),
    Synonym("function class classes decorator app apps notebook fastapi bentoml", meant="alipes help functions"),
    Synonym("batches batched dynamic-batching max-batch-size microbatching", meant="alipes help batching"),
    Synonym("exporting saving convert", meant="alipes help export"),
)
