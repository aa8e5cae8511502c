"""Which module names of hermes are answered to, and with what.

One row a module: its names, each with where it is at home here, as `module:name`. `Absent` in the place of a home, or
of a whole row, stands for names that can be imported and say on use why nothing is behind them. hermes was called
gravswell before, so every module below `quiver` and `cloudbreak` has both names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

__all__ = ["MODULES", "MOVED", "ROOTS", "Absent", "Row"]


@dataclass(frozen=True, slots=True)
class Absent:
    """Names that can be imported and not used.

    Attributes:
        names: They; any other public name of the module is answered to likewise.
        reason: Why nothing is behind them, and what to do instead.
    """

    names: tuple[str, ...]
    reason: str


Row: TypeAlias = Mapping[str, str | Absent] | Absent

_CLUSTERS: Final = (
    "alipes does not rent machines or clusters yet; start servers there with your own tools, on a repository in a "
    "bucket, and give their addresses to InferenceClient and ServerMonitor"
)
_INSIDE: Final = "it was a part of how servers were started there; `serve` starts one and gives what waits for it"
_PROCESS: Final = "the client that was a process went in 2022; hermes.aeriel.client.InferenceClient took its place"
_HANDLES: Final = "exporters here say in their class method `handles` what they take"
_PLANS: Final = "plans are built by exporting to Platform.TENSORRT, here or by a server that its `endpoint=` names"
_AVERAGER: Final = "it was a part of the averager there; OnlineAverager is the module"
_FRAMES: Final = "it left hermes in 2022 and has nothing to do with serving; read frame files with gwpy"


def _from(module: str, *names: str, **renamed: str) -> dict[str, str | Absent]:
    """The names of a row, from one module here; `theirs="ours"` where they differ."""
    same: dict[str, str | Absent] = {name: f"alipes.{module}:{name}" for name in names}
    return same | {theirs: f"alipes.{module}:{ours}" for theirs, ours in renamed.items()}


def _without(reason: str, *names: str) -> dict[str, str | Absent]:
    """Names in a row that nothing is behind."""
    return dict.fromkeys(names, Absent((), reason))


_REPOSITORY: Final[dict[str, Row]] = {
    "": {
        **_from("repository", "Platform", "conventions", "Model", "ModelConfig"),
        **_from("compat.model_repository", "ModelRepository"),
    },
    ".model": _from("repository", "ExposedTensor", "Model", "EnsembleModel"),
    ".model_config": {
        **_from("repository", "ModelConfig", "EnsembleConfig"),
        **_from("compat.quiver", "KIND_TYPE", "GPUS_TYPE"),
    },
    ".model_repository": _from("compat.model_repository", "ModelRepository"),
    ".platform": _from("repository", "Platform", "conventions"),
    ".types": _from("compat.quiver", "SHAPE_TYPE", "IO_TYPE", "EXPOSED_TYPE"),
    ".exporters": {
        **_from("repository", "Exporter"),
        **_from("repository.export.ensemble", Ensemble="EnsembleExporter"),
        **_from("repository.export.keras", "KerasSavedModel"),
        **_from("repository.export.torch_onnx", "TorchOnnx"),
        **_from("repository.export.tensorrt", TorchTensorRT="TensorRT"),
        **_from("repository.export.torch_script", "TorchScript"),
    },
    ".exporters.exporter": _from("repository", "Exporter"),
    ".exporters.ensemble": {
        **_from("repository.export.ensemble", Ensemble="EnsembleExporter"),
        **_without(_HANDLES, "EnsembleMeta"),
    },
    ".exporters.keras_savedmodel": {
        **_from("repository.export.keras", "KerasSavedModel"),
        **_without(_HANDLES, "KerasSavedModelMeta"),
    },
    ".exporters.torch_onnx": {
        **_from("repository.export.torch_onnx", "TorchOnnx"),
        **_without(_HANDLES, "TorchOnnxMeta"),
    },
    ".exporters.torch_tensorrt": {
        **_from("repository.export.tensorrt", TorchTensorRT="TensorRT"),
        **_without(_HANDLES, "TorchTensorRTMeta"),
    },
    ".exporters.torchscript": {
        **_from("repository.export.torch_script", "TorchScript"),
        **_without(_HANDLES, "TorchScriptMeta"),
    },
    ".exporters.tensorrt": {},
    ".exporters.tensorrt.onnx": _without(_PLANS, "convert_network"),
    ".exporters.utils": {
        **_from("repository.export.find", "find_exporter"),
        **_from("compat.quiver", "get_input_names_from_torch_object"),
    },
    ".io": {
        **_from("repository.store.base", FileSystem="Store"),
        **_from("repository.store.local", "LocalFileSystem"),
        **_from("compat.quiver", "GCSFileSystem"),
    },
    ".io.exceptions": _from("repository.store.base", "NoFilesFoundError"),
    ".io.file_system": _from("repository.store.base", FileSystem="Store"),
    ".io.gcs": _from("compat.quiver", "GCSFileSystem"),
    ".io.local": _from("repository.store.local", "LocalFileSystem"),
    ".streaming": _from("streaming", "make_streaming_input_model", "make_streaming_output_model"),
    ".streaming.utils": _from("streaming", "add_streaming_model"),
    ".streaming.streaming_input": _from("streaming", "Snapshotter", "make_streaming_input_model"),
    ".streaming.streaming_output": {
        **_from("streaming", "OnlineAverager", "make_streaming_output_model"),
        **_without(_AVERAGER, "window"),
    },
}

_GOOGLE: Final = Absent(
    (
        "Cluster",
        "ClusterManager",
        "NodePool",
        "VMClient",
        "VMInstance",
        "VMManager",
        "create_gpu_node_pool_config",
        "make_simple_debian_instance_description",
    ),
    _CLUSTERS,
)

_SERVE: Final = _from("compat.serve", "serve")
_MONITOR: Final = _from("monitor", "ServerMonitor", "Pipeline", "PipelineProcess", "ExceptionWrapper")

_WATCHING: Final[dict[str, Row]] = {
    ".monitor": _from("monitor", "ServerMonitor"),
    ".process": _from("monitor", "Pipeline", "PipelineProcess"),
    ".logging": _from("compat.monitor_logging", "LogListener", "listener", "log_q", "logger", "shutdown"),
    ".utils": _from("monitor", "ExceptionWrapper", "Throttle"),
}

_HERMES: Final[dict[str, Row]] = {
    "hermes": {},
    "hermes.aeriel": {},
    "hermes.aeriel.client": _from("client", "InferenceClient"),
    "hermes.aeriel.client.client": {
        **_from("client", "InferenceClient"),
        **_from("client.inference.clock", "ProfilerClock"),
        **_from("compat.client", "SHAPE", "_check_ready"),
    },
    "hermes.aeriel.serve": _SERVE,
    "hermes.aeriel.serve.serve": {
        **_from("compat.serve", "serve", "TRITON_BINARY", "LDG_REGISTRY"),
        **_without(_INSIDE, "get_wait", "target", "Timer"),
    },
    "hermes.aeriel.serve.singularity": _without(_INSIDE, "SingularityInstance"),
    **{f"hermes.quiver{name}": row for name, row in _REPOSITORY.items()},
    "hermes.aeriel.monitor": _MONITOR,
    **{f"hermes.aeriel.monitor{name}": row for name, row in _WATCHING.items()},
    "hermes.stillwater": {**_MONITOR, **_without(_PROCESS, "InferenceClient", "Package")},
    **{f"hermes.stillwater{name}": row for name, row in _WATCHING.items()},
    "hermes.cloudbreak": {},
    "hermes.cloudbreak.clouds": {},
    "hermes.cloudbreak.clouds.google": _GOOGLE,
    "hermes.cloudbreak.clouds.base": Absent((), _CLUSTERS),
    "hermes.cloudbreak.kubernetes": Absent((), _CLUSTERS),
    "hermes.typeo": _from("compat.typeo", "typeo", "spoof"),
    "hermes.gwftools": Absent((), _FRAMES),
}

_GRAVSWELL: Final[dict[str, Row]] = {
    "gravswell": {},
    **{name.replace("hermes", "gravswell", 1): row for name, row in _HERMES.items() if ".quiver" in name},
    "gravswell.cloudbreak": {},
    "gravswell.cloudbreak.google": _GOOGLE,
}

MODULES: Final[Mapping[str, Row]] = MappingProxyType(_HERMES | _GRAVSWELL)
"""Module name -> its row. Modules below one of them are packages' own rows here."""

ROOTS: Final = frozenset({"hermes", "gravswell"})
"""The packages that are answered for, unless they are installed."""

MOVED: Final = frozenset({"hermes.typeo", "hermes.gwftools"})
"""Modules that left hermes and may be installed by themselves, in a folder `hermes` that has nothing else of it."""
