"""The names that hermes had in its releases, each with its module: scripts find every one of them here.

The list is read from its newest release and, for what came before, from what its users import.
"""

from __future__ import annotations

from importlib import import_module

import pytest
from alipes.compat.names import MODULES
from alipes.compat.rows import Absent

# As release 0.3.1 has them: names that begin with an underscore are its own, but for one that users import.
RELEASED = {
    "hermes": "",
    "hermes.aeriel.client": "InferenceClient",
    "hermes.aeriel.client.client": "InferenceClient ProfilerClock SHAPE _check_ready",
    "hermes.aeriel.monitor": "ExceptionWrapper Pipeline PipelineProcess ServerMonitor",
    "hermes.aeriel.monitor.logging": "LogListener listener log_q logger shutdown",
    "hermes.aeriel.monitor.monitor": "ServerMonitor",
    "hermes.aeriel.monitor.process": "Pipeline PipelineProcess",
    "hermes.aeriel.monitor.utils": "ExceptionWrapper Throttle",
    "hermes.aeriel.serve": "serve",
    "hermes.aeriel.serve.serve": "LDG_REGISTRY TRITON_BINARY Timer get_wait serve target",
    "hermes.quiver": "Model ModelConfig ModelRepository Platform conventions",
    "hermes.quiver.exporters": "Ensemble Exporter KerasSavedModel TorchOnnx TorchScript TorchTensorRT",
    "hermes.quiver.exporters.ensemble": "Ensemble EnsembleMeta",
    "hermes.quiver.exporters.exporter": "Exporter",
    "hermes.quiver.exporters.keras_savedmodel": "KerasSavedModel KerasSavedModelMeta",
    "hermes.quiver.exporters.tensorrt": "",
    "hermes.quiver.exporters.tensorrt.onnx": "convert_network",
    "hermes.quiver.exporters.torch_onnx": "TorchOnnx TorchOnnxMeta",
    "hermes.quiver.exporters.torch_tensorrt": "TorchTensorRT TorchTensorRTMeta",
    "hermes.quiver.exporters.torchscript": "TorchScript TorchScriptMeta",
    "hermes.quiver.exporters.utils": "find_exporter get_input_names_from_torch_object",
    "hermes.quiver.io": "FileSystem GCSFileSystem LocalFileSystem",
    "hermes.quiver.io.exceptions": "NoFilesFoundError",
    "hermes.quiver.io.file_system": "FileSystem",
    "hermes.quiver.io.gcs": "GCSFileSystem",
    "hermes.quiver.io.local": "LocalFileSystem",
    "hermes.quiver.model": "EnsembleModel ExposedTensor Model",
    "hermes.quiver.model_config": "EnsembleConfig GPUS_TYPE KIND_TYPE ModelConfig",
    "hermes.quiver.model_repository": "ModelRepository",
    "hermes.quiver.platform": "Platform conventions",
    "hermes.quiver.streaming": "make_streaming_input_model make_streaming_output_model",
    "hermes.quiver.streaming.streaming_input": "Snapshotter make_streaming_input_model",
    "hermes.quiver.streaming.streaming_output": "OnlineAverager make_streaming_output_model window",
    "hermes.quiver.streaming.utils": "add_streaming_model",
    "hermes.quiver.types": "EXPOSED_TYPE IO_TYPE SHAPE_TYPE",
}

OLDER = {
    "hermes.aeriel": "",
    "hermes.aeriel.serve.singularity": "SingularityInstance",
    "hermes.stillwater": "ExceptionWrapper InferenceClient Package Pipeline PipelineProcess ServerMonitor",
    "hermes.stillwater.monitor": "ServerMonitor",
    "hermes.stillwater.process": "Pipeline PipelineProcess",
    "hermes.stillwater.utils": "ExceptionWrapper Throttle",
    "hermes.stillwater.logging": "LogListener listener log_q logger shutdown",
    "hermes.cloudbreak": "",
    "hermes.cloudbreak.clouds": "",
    "hermes.cloudbreak.clouds.google": "Cluster ClusterManager NodePool VMClient VMInstance VMManager "
    "create_gpu_node_pool_config make_simple_debian_instance_description",
    "hermes.typeo": "spoof typeo",
    "hermes.gwftools": "",
    "gravswell": "",
    "gravswell.quiver": "Model ModelConfig ModelRepository Platform conventions",
    "gravswell.cloudbreak.google": "Cluster ClusterManager NodePool create_gpu_node_pool_config",
}

LISTED = [(module, name) for module, names in (RELEASED | OLDER).items() for name in names.split()]


@pytest.mark.parametrize("module", [*RELEASED, *OLDER])
def test_every_module_of_hermes_is_answered(module: str) -> None:
    assert module in MODULES


@pytest.mark.parametrize(("module", "name"), LISTED, ids=lambda value: value)
def test_every_name_of_hermes_has_a_home_or_a_reason(module: str, name: str) -> None:
    row = MODULES[module]
    home = row if isinstance(row, Absent) else row[name]
    if isinstance(home, Absent):
        assert len(home.reason.split()) > 5
        assert name in home.names or not isinstance(row, Absent)
    else:
        place, _, attribute = home.partition(":")
        assert place.startswith("alipes.")
        assert attribute in dir(import_module(place)) or hasattr(import_module(place), attribute)
