"""Which module names of hermes are answered to, and with what.

One row a module: its names, each with where it is at home here, as `module:name`. `Absent` in the place of a home, or
of a whole row, stands for names that can be imported and say on use why nothing is behind them. hermes was called
gravswell before, so every module below `quiver` and `cloudbreak` has both names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from alipes.compat.rows import Absent, Row, homes, without

__all__ = ["MODULES", "MOVED", "ROOTS"]

_MACHINES: Final = (
    "alipes makes clusters of Google Cloud and no single machines: add a node pool to a cluster, or make machines with "
    "`gcloud compute instances create` and give their addresses to InferenceClient and ServerMonitor"
)
_INSIDE: Final = "it was a part of how servers were started there; `serve` starts one and gives what waits for it"
_PROCESS: Final = "the client that was a process went in 2022; hermes.aeriel.client.InferenceClient took its place"
_HANDLES: Final = "exporters here say in their class method `handles` what they take"
_PLANS: Final = "plans are built by exporting to Platform.TENSORRT, here or by a server that its `endpoint=` names"
_AVERAGER: Final = "it was a part of the averager there; OnlineAverager is the module"
_FRAMES: Final = "it left hermes in 2022 and has nothing to do with serving; read frame files with gwpy"


_REPOSITORY: Final[dict[str, Row]] = {
    "": {
        **homes("repository", "Platform", "conventions", "Model", "ModelConfig"),
        **homes("compat.model_repository", "ModelRepository"),
    },
    ".model": homes("repository", "ExposedTensor", "Model", "EnsembleModel"),
    ".model_config": {
        **homes("repository", "ModelConfig", "EnsembleConfig"),
        **homes("compat.quiver", "KIND_TYPE", "GPUS_TYPE"),
    },
    ".model_repository": homes("compat.model_repository", "ModelRepository"),
    ".platform": homes("repository", "Platform", "conventions"),
    ".types": homes("compat.quiver", "SHAPE_TYPE", "IO_TYPE", "EXPOSED_TYPE"),
    ".exporters": {
        **homes("repository", "Exporter"),
        **homes("repository.export.ensemble", Ensemble="EnsembleExporter"),
        **homes("repository.export.keras", "KerasSavedModel"),
        **homes("repository.export.torch_onnx", "TorchOnnx"),
        **homes("repository.export.tensorrt", TorchTensorRT="TensorRT"),
        **homes("repository.export.torch_script", "TorchScript"),
    },
    ".exporters.exporter": homes("repository", "Exporter"),
    ".exporters.ensemble": {
        **homes("repository.export.ensemble", Ensemble="EnsembleExporter"),
        **without(_HANDLES, "EnsembleMeta"),
    },
    ".exporters.keras_savedmodel": {
        **homes("repository.export.keras", "KerasSavedModel"),
        **without(_HANDLES, "KerasSavedModelMeta"),
    },
    ".exporters.torch_onnx": {
        **homes("repository.export.torch_onnx", "TorchOnnx"),
        **without(_HANDLES, "TorchOnnxMeta"),
    },
    ".exporters.torch_tensorrt": {
        **homes("repository.export.tensorrt", TorchTensorRT="TensorRT"),
        **without(_HANDLES, "TorchTensorRTMeta"),
    },
    ".exporters.torchscript": {
        **homes("repository.export.torch_script", "TorchScript"),
        **without(_HANDLES, "TorchScriptMeta"),
    },
    ".exporters.tensorrt": {},
    ".exporters.tensorrt.onnx": without(_PLANS, "convert_network"),
    ".exporters.utils": {
        **homes("repository.export.find", "find_exporter"),
        **homes("compat.quiver", "get_input_names_from_torch_object"),
    },
    ".io": {
        **homes("repository.store.base", FileSystem="Store"),
        **homes("repository.store.local", "LocalFileSystem"),
        **homes("compat.quiver", "GCSFileSystem"),
    },
    ".io.exceptions": homes("repository.store.base", "NoFilesFoundError"),
    ".io.file_system": homes("repository.store.base", FileSystem="Store"),
    ".io.gcs": homes("compat.quiver", "GCSFileSystem"),
    ".io.local": homes("repository.store.local", "LocalFileSystem"),
    ".streaming": homes("streaming", "make_streaming_input_model", "make_streaming_output_model"),
    ".streaming.utils": homes("streaming", "add_streaming_model"),
    ".streaming.streaming_input": homes("streaming", "Snapshotter", "make_streaming_input_model"),
    ".streaming.streaming_output": {
        **homes("streaming", "OnlineAverager", "make_streaming_output_model"),
        **without(_AVERAGER, "window"),
    },
}

_NODES: Final = homes("cloud.google", "NodePool", "create_gpu_node_pool_config")

_GOOGLE: Final = {
    **homes("compat.cloudbreak", "Cluster", "ClusterManager"),
    **_NODES,
    **without(_MACHINES, "VMClient", "VMInstance", "VMManager", "make_simple_debian_instance_description"),
}

_SERVE: Final = homes("compat.serve", "serve")
_MONITOR: Final = homes("monitor", "ServerMonitor", "Pipeline", "PipelineProcess", "ExceptionWrapper")

_WATCHING: Final[dict[str, Row]] = {
    ".monitor": homes("monitor", "ServerMonitor"),
    ".process": homes("monitor", "Pipeline", "PipelineProcess"),
    ".logging": homes("compat.monitor_logging", "LogListener", "listener", "log_q", "logger", "shutdown"),
    ".utils": homes("monitor", "ExceptionWrapper", "Throttle"),
}

_HERMES: Final[dict[str, Row]] = {
    "hermes": {},
    "hermes.aeriel": {},
    "hermes.aeriel.client": homes("client", "InferenceClient"),
    "hermes.aeriel.client.client": {
        **homes("client", "InferenceClient"),
        **homes("client.inference.clock", "ProfilerClock"),
        **homes("compat.client", "SHAPE", "_check_ready"),
    },
    "hermes.aeriel.serve": _SERVE,
    "hermes.aeriel.serve.serve": {
        **homes("compat.serve", "serve", "TRITON_BINARY", "LDG_REGISTRY"),
        **without(_INSIDE, "get_wait", "target", "Timer"),
    },
    "hermes.aeriel.serve.singularity": without(_INSIDE, "SingularityInstance"),
    **{f"hermes.quiver{name}": row for name, row in _REPOSITORY.items()},
    "hermes.aeriel.monitor": _MONITOR,
    **{f"hermes.aeriel.monitor{name}": row for name, row in _WATCHING.items()},
    "hermes.stillwater": {**_MONITOR, **without(_PROCESS, "InferenceClient", "Package")},
    **{f"hermes.stillwater{name}": row for name, row in _WATCHING.items()},
    "hermes.cloudbreak": {},
    "hermes.cloudbreak.clouds": {},
    "hermes.cloudbreak.clouds.google": _GOOGLE,
    "hermes.cloudbreak.clouds.base": {
        **homes("compat.cloudbreak", "Cluster", "ClusterManager"),
        **homes("cloud.google", "NodePool"),
    },
    "hermes.cloudbreak.kubernetes": {
        **homes("cloud.kubernetes.handles", "DaemonSet", "Deployment", "Service"),
        **homes("cloud.google.kubernetes_client", K8sApiClient="KubernetesClient"),
    },
    "hermes.typeo": homes("compat.typeo", "typeo", "spoof"),
    "hermes.gwftools": Absent((), _FRAMES),
}

_GRAVSWELL: Final[dict[str, Row]] = {
    "gravswell": {},
    **{name.replace("hermes", "gravswell", 1): row for name, row in _HERMES.items() if ".quiver" in name},
    "gravswell.cloudbreak": {},
    "gravswell.cloudbreak.google": {**homes("cloud.google", "Cluster", "ClusterManager"), **_NODES},
}

MODULES: Final[Mapping[str, Row]] = MappingProxyType(_HERMES | _GRAVSWELL)
"""Module name -> its row. Modules below one of them are packages' own rows here."""

ROOTS: Final = frozenset({"hermes", "gravswell"})
"""The packages that are answered for, unless they are installed."""

MOVED: Final = frozenset({"hermes.typeo", "hermes.gwftools"})
"""Modules that left hermes and may be installed by themselves, in a folder `hermes` that has nothing else of it."""
