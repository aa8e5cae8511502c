"""Execution providers of ONNX models on a GPU: CUDA, and before it TensorRT where the configuration names it.

Source: Triton's ONNX Runtime backend, "ONNX Runtime with TensorRT optimization" and "... CUDA Execution Provider".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from alipes.config.instances import is_on_gpu
from alipes.config.schema import ModelConfig
from alipes.errors import ConfigError

__all__ = ["gpu_providers", "idle_parameters"]

_KEY: Final = "optimization.execution_accelerators.gpu_execution_accelerator"

_PRECISIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "FP32": {},
    "FP16": {"trt_fp16_enable": "1"},
    "BF16": {"trt_bf16_enable": "1"},
    "INT8": {"trt_int8_enable": "1"},
}
"""What `precision_mode` means to TensorRT's provider."""

_TRITONS: Final[Mapping[str, str]] = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
"""Triton's own names of options; all others of TensorRT begin with `trt_`, as in ONNX Runtime."""

_GRAPH: Final = "a recorded graph needs every tensor at one address, where those of requests are not"
_ADDRESS: Final = "it is an address in the server"
_CODE: Final = "it would load code into the server"

_REFUSED: Final[Mapping[str, str]] = {
    "device_id": "the instance group says which GPU",
    "enable_cuda_graph": _GRAPH,
    "gpu_external_alloc": _ADDRESS,
    "gpu_external_empty_cache": _ADDRESS,
    "gpu_external_free": _ADDRESS,
    "has_user_compute_stream": _ADDRESS,
    "trt_cuda_graph_enable": _GRAPH,
    "trt_external_data_bytestream": _ADDRESS,
    "trt_external_data_bytestream_size": _ADDRESS,
    "trt_engine_decryption_lib_path": _CODE,
    "trt_extra_plugin_lib_paths": _CODE,
    "trt_onnx_bytestream": _ADDRESS,
    "trt_onnx_bytestream_size": _ADDRESS,
    "user_compute_stream": _ADDRESS,
}
"""Options that a configuration may not set, and why."""


def gpu_providers(config: ModelConfig, cuda: Mapping[str, str]) -> list[dict[str, Any]]:
    """The providers of instances on a GPU, the preferred one first; the last is CUDA.

    Args:
        config: The configuration.
        cuda: Options of CUDA that the model's parameters set; they win over those of the accelerator `cuda`.

    Raises:
        ConfigError: If an accelerator or one of its settings is unknown, or one may not be set here.
    """
    options: dict[str, str] = {}
    providers: list[dict[str, Any]] = []
    for accelerator in config.optimization.execution_accelerators.gpu_execution_accelerator:
        parameters = dict(accelerator.parameters)
        _check_allowed(parameters, config.name)
        if accelerator.name == "tensorrt":
            made = (option for key, text in sorted(parameters.items()) for option in _tensorrt(key, text))
            providers.append({"kind": "tensorrt", "options": dict(made)})
        elif accelerator.name == "cuda":
            options |= parameters
        else:
            raise ConfigError(f"unknown Execution Accelerator '{accelerator.name}' is requested", key=f"{_KEY}.name")
    return [*providers, {"kind": "cuda", "options": options | dict(cuda)}]


def idle_parameters(config: ModelConfig, cuda: Mapping[str, str]) -> list[str]:
    """One notice for each parameter that tunes CUDA and does nothing, since no instance is on a GPU."""
    if is_on_gpu(config):
        return []
    return [f"parameter '{key}' of model '{config.name}' does nothing: no instance runs on a GPU" for key in cuda]


def _tensorrt(key: str, text: str) -> Iterator[tuple[str, str]]:
    if key == "precision_mode":
        if text not in _PRECISIONS:
            raise ConfigError(f"unsupported precision mode '{text}' is requested", key=f"{_KEY}.parameters")
        yield from _PRECISIONS[text].items()
    elif key in _TRITONS or key.startswith("trt_"):
        yield _TRITONS.get(key, key), text
    else:
        raise ConfigError(
            f"unknown parameter '{key}' is provided for TensorRT Execution Accelerator", key=f"{_KEY}.parameters"
        )


def _check_allowed(parameters: Mapping[str, str], name: str) -> None:
    for key in parameters:
        if key in _REFUSED:
            raise ConfigError(
                f"parameter '{key}' of an execution accelerator of model '{name}' cannot be set: {_REFUSED[key]}",
                key=f"{_KEY}.parameters",
            )
