"""Providers of ONNX models on GPUs: what a configuration makes of CUDA and TensorRT, and the libraries they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend, engine_spec
from alipes.backends.onnxruntime.gpu_libraries import CUDA_PROVIDER, find_gpu_libraries, has_cuda_provider
from alipes.backends.onnxruntime.providers import gpu_providers, idle_parameters
from alipes.backends.pytorch.backend import PytorchBackend
from alipes.config.gpus import GpuUse
from alipes.config.load import parse_flags
from alipes.config.parameters import read_parameters
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.support import missing_servants
from alipes.errors import ConfigError

ON_GPU = "instance_group { kind: KIND_GPU gpus: 0 count: 1 }"


def config(*accelerators: str, group: str = ON_GPU) -> Any:
    listed = " ".join(f"gpu_execution_accelerator {{ {accelerator} }}" for accelerator in accelerators)
    return parse_pbtxt(f'name: "m" {group} optimization {{ execution_accelerators {{ {listed} }} }}')


def accelerator(name: str, **parameters: str) -> str:
    listed = (f'parameters {{ key: "{key}" value: "{value}" }}' for key, value in parameters.items())
    return f'name: "{name}" {" ".join(listed)}'


def refusal(*accelerators: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        gpu_providers(config(*accelerators), {})
    return caught.value


def test_cuda_is_the_provider_where_none_is_named() -> None:
    assert gpu_providers(config(), {}) == [{"kind": "cuda", "options": {}}]


def test_tensorrt_comes_before_cuda_in_onnx_runtimes_words() -> None:
    asked = accelerator(
        "tensorrt",
        precision_mode="FP16",
        max_workspace_size_bytes="1073741824",
        int8_calibration_table_name="table",
        trt_engine_cache_enable="1",
        trt_engine_cache_path="/cache",
    )
    options = {
        "trt_fp16_enable": "1",
        "trt_max_workspace_size": "1073741824",
        "trt_int8_calibration_table_name": "table",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": "/cache",
    }
    assert gpu_providers(config(asked), {}) == [
        {"kind": "tensorrt", "options": options},
        {"kind": "cuda", "options": {}},
    ]


def test_parameters_of_the_model_win_over_those_of_cuda() -> None:
    asked = accelerator("cuda", gpu_mem_limit="1", use_ep_level_unified_stream="1")
    assert gpu_providers(config(asked), {"gpu_mem_limit": "2"}) == [
        {"kind": "cuda", "options": {"gpu_mem_limit": "2", "use_ep_level_unified_stream": "1"}}
    ]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (accelerator("openvino"), "unknown Execution Accelerator 'openvino' is requested"),
        (accelerator("tensorrt", precision_mode="FP8"), "unsupported precision mode 'FP8' is requested"),
        (
            accelerator("tensorrt", speed="1"),
            "unknown parameter 'speed' is provided for TensorRT Execution Accelerator",
        ),
        (accelerator("tensorrt", trt_extra_plugin_lib_paths="/x.so"), "it would load code into the server"),
        (accelerator("tensorrt", trt_onnx_bytestream="4096"), "'trt_onnx_bytestream' of an execution accelerator of "),
        (
            accelerator("tensorrt", trt_cuda_graph_enable="1"),
            "cannot be set: a recorded graph needs every tensor at one",
        ),
        (accelerator("cuda", device_id="3"), "of model 'm' cannot be set: the instance group says which GPU"),
        (accelerator("cuda", user_compute_stream="4096"), "cannot be set: it is an address in the server"),
        (accelerator("cuda", gpu_external_alloc="4096"), "cannot be set: it is an address in the server"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(asked: str, text: str) -> None:
    assert text in str(refusal(asked))


def test_the_specification_names_providers_only_on_a_gpu() -> None:
    parameters = read_parameters({"cudnn_conv_algo_search": "1"}, "m")
    on_gpu = engine_spec(config(), parameters, 8)
    assert on_gpu["gpu_providers"] == [{"kind": "cuda", "options": {"cudnn_conv_algo_search": "HEURISTIC"}}]
    on_cpu = engine_spec(config(group="instance_group { kind: KIND_CPU count: 1 }"), parameters, 8)
    assert (on_cpu["gpu_providers"], on_cpu["gpu_libraries"]) == ([], [])


def test_settings_of_a_gpu_give_a_notice_without_one() -> None:
    parameters = {"gpu_mem_limit": "1"}
    assert idle_parameters(config(group="instance_group { kind: KIND_CPU }"), parameters) == [
        "parameter 'gpu_mem_limit' of model 'm' does nothing: no instance runs on a GPU"
    ]
    assert idle_parameters(config(), parameters) == []


@pytest.mark.parametrize(
    ("backend", "group", "count"),
    [("onnxruntime", ON_GPU, 0), ("onnxruntime", "instance_group { kind: KIND_CPU }", 1), ("pytorch", ON_GPU, 1)],
)
def test_an_accelerator_that_does_nothing_gives_a_notice(backend: str, group: str, count: int) -> None:
    made = config(accelerator("tensorrt"), group=group)
    made.backend = backend
    assert len(missing_servants(made, parse_flags(["models"], {}))) == count


@pytest.mark.parametrize(
    ("key", "text", "option"),
    [
        ("cudnn_conv_algo_search", "0", "EXHAUSTIVE"),
        ("cudnn_conv_algo_search", "2", "DEFAULT"),
        ("arena_extend_strategy", "1", "kSameAsRequested"),
        ("do_copy_in_default_stream", "0", "0"),
        ("gpu_mem_limit", "4294967200", "4294967200"),
        ("gpu_mem_limit", "18446744073709551615", "18446744073709551615"),
    ],
)
def test_older_parameters_are_options_of_cuda(key: str, text: str, option: str) -> None:
    assert read_parameters({key: text}, "m").cuda == {key: option}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("cudnn_conv_algo_search", "3"),
        ("cudnn_conv_algo_search", "EXHAUSTIVE"),
        ("arena_extend_strategy", "2"),
        ("do_copy_in_default_stream", "-1"),
        ("gpu_mem_limit", "all"),
        ("gpu_mem_limit", "9" * 30),
    ],
)
def test_an_older_parameter_that_makes_no_sense_is_refused(key: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"parameter '{key}' of model 'm' must be") as caught:
        read_parameters({key: text}, "m")
    assert caught.value.key == f"parameters.{key}"


def test_a_wheel_with_a_part_for_cuda_differs_from_one_without(tmp_path: Path) -> None:
    library = tmp_path / "libonnxruntime.so.1.31.1"
    assert not has_cuda_provider(library)
    (tmp_path / CUDA_PROVIDER).write_bytes(b"")
    assert has_cuda_provider(library)


def test_backends_prefer_gpus_where_their_wheels_can_use_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder, file in (("onnxruntime/capi", "libonnxruntime.so.1.31.1"), ("torch/lib", "libtorch.so")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / file).write_bytes(b"")
    places = {"onnxruntime": [tmp_path / "onnxruntime"], "torch": [tmp_path / "torch"]}
    monkeypatch.setattr("alipes.backends.onnxruntime.library.package_folders", places.__getitem__)
    monkeypatch.setattr("alipes.backends.pytorch.backend.package_folders", places.__getitem__)
    assert (OnnxruntimeBackend.gpu_use(), PytorchBackend.gpu_use()) == (GpuUse.EXPLICIT, GpuUse.EXPLICIT)
    (tmp_path / "onnxruntime" / "capi" / CUDA_PROVIDER).write_bytes(b"")
    (tmp_path / "torch" / "lib" / "libtorch_cuda.so").write_bytes(b"")
    assert (OnnxruntimeBackend.gpu_use(), PytorchBackend.gpu_use()) == (GpuUse.PREFERRED, GpuUse.PREFERRED)


def test_libraries_of_nvidias_wheels_come_after_what_they_need(tmp_path: Path) -> None:
    nvidia, tensorrt = tmp_path / "nvidia", tmp_path / "tensorrt_libs"
    for file in ("cu13/lib/libcublas.so.13", "cu13/lib/libcublasLt.so.13", "cu13/lib/libcudart.so.13", "cu13/README"):
        (nvidia / file).parent.mkdir(parents=True, exist_ok=True)
        (nvidia / file).write_bytes(b"")
    (nvidia / "cudnn" / "lib").mkdir(parents=True)
    (nvidia / "cudnn" / "lib" / "libcudnn.so.9").write_bytes(b"")
    tensorrt.mkdir()
    (tensorrt / "libnvinfer.so.10").write_bytes(b"")
    found = find_gpu_libraries(lambda package: {"nvidia": [nvidia], "tensorrt_libs": [tensorrt]}[package])
    names = [file.name for file in found]
    assert names == ["libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9", "libnvinfer.so.10"]
    assert all(file.is_absolute() for file in found)


def test_without_nvidias_wheels_there_is_nothing_to_open() -> None:
    assert find_gpu_libraries(lambda _: []) == []
