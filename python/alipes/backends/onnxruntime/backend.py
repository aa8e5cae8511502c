"""Prepares ONNX models: the file itself says what its inputs and outputs are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from alipes import _core
from alipes.backends.base import Backend, Draft, Engine
from alipes.backends.onnxruntime.gpu_libraries import find_gpu_libraries, has_cuda_provider
from alipes.backends.onnxruntime.library import find_library
from alipes.backends.onnxruntime.model_file import OnnxFile, run_arrays
from alipes.backends.onnxruntime.providers import gpu_providers, idle_parameters
from alipes.backends.onnxruntime.ranks import inputs_without_shape
from alipes.backends.proofs import proof_key, proof_of
from alipes.config.compare import check_signature
from alipes.config.complete import complete_from_signature, is_complete, rows_within, wants_proof
from alipes.config.gpus import GpuUse
from alipes.config.instances import instance_names, is_on_gpu
from alipes.config.options import ModelOptions
from alipes.config.parameters import EngineParameters, read_parameters
from alipes.config.schema import ModelConfig
from alipes.config.spec import available_cores
from alipes.config.tuning import TUNING_PREFIX
from alipes.errors import ConfigError, ModelLoadError
from alipes.row_proof import prove_rows
from alipes.signature import Signature

__all__ = ["OnnxruntimeBackend", "engine_spec"]

_GRAPH_LEVELS: Final = {-1: "basic", 0: "all", 1: "extended", 2: "disable"}
"""`optimization.graph.level` as the ONNX Runtime backend of Triton reads it; other numbers mean all."""


class OnnxruntimeBackend(Backend):
    """Prepares one version of an ONNX model."""

    def __init__(
        self,
        draft: Draft,
        *,
        find_library: Callable[[], Path] = find_library,
        open_file: Callable[[str, str], OnnxFile] = _core.OnnxProbe,
    ) -> None:
        """Finds the library.

        Args:
            draft: The version.
            find_library: Where the library is.
            open_file: Loads a model file by the library at one path and its own, as `alipes._core.OnnxProbe`; slow.

        Raises:
            ModelLoadError: If ONNX Runtime is not installed.
        """
        super().__init__(draft)
        self._library = find_library()
        self._open_file = open_file
        self._opened: tuple[OnnxFile, Signature] | None = None
        self._notices: tuple[str, ...] = ()

    @classmethod
    def gpu_use(cls) -> GpuUse:
        """Any that may, where the installed wheel has a part for GPUs; else those that ask for one, and are told."""
        try:
            library = find_library()
        except ModelLoadError:
            return GpuUse.EXPLICIT
        return GpuUse.PREFERRED if has_cuda_provider(library) else GpuUse.EXPLICIT

    def complete(self) -> None:
        """Complete inputs, outputs, largest batch and dynamic batching, where inputs or outputs are not listed."""
        config = self.draft.config
        if is_complete(config):
            return
        file, signature = self._file()
        options = self.draft.options.model
        default = _default_max_batch_size(options, signature)
        self._check_ranks(signature)
        proof = None
        if signature.can_batch and wants_proof(config, default):
            key = proof_key(self.draft.version_folder, [self.draft.model_file().name, self._library.name])
            run = partial(run_arrays, file, signature)
            proof = proof_of(key, lambda: prove_rows(run, signature, check=self.draft.load.check))
        notice = complete_from_signature(config, signature, default, proof, options.default_max_queue_delay_us)
        self._notices = (notice,) if notice else ()

    def engine(self) -> Engine:
        """Hold the configuration against the file, and say how ONNX Runtime runs it."""
        config = self.draft.config
        self._check_ranks(self._file()[1])
        check_signature(config, self._file()[1])
        self._opened = None  # its memory is free again before the instances are loaded
        parameters = _parameters(config)
        files = {"library": str(self._library), "model_path": str(self.draft.model_file())}
        spec = {**files, **engine_spec(config, parameters, available_cores())}
        notices = (*self._notices, *parameters.notices, *idle_parameters(config, parameters.cuda))
        return Engine(spec, notices, self._private)

    def adapt(self, engine: dict[str, Any]) -> dict[str, Any]:
        """Share the cores among the new number of instances; those that run keep their threads."""
        config = self.draft.config
        return {**engine, **engine_spec(config, _parameters(config), available_cores())}

    def _check_ranks(self, signature: Signature) -> None:
        """Refuse inputs without a shape, unless the configuration says that they are one element: nothing else runs.

        Raises:
            ConfigError: With the first of them.
        """
        config = self.draft.config
        alike = [port.name for port in signature.inputs if not port.shape]
        elements = {tensor.name for tensor in config.input if list(tensor.dims) == [1]}
        if set(alike) <= elements:
            return
        unknown = [name for name in inputs_without_shape(self.draft.model_file()) if name in set(alike) - elements]
        if unknown:
            raise ConfigError(
                f"unable to load model '{config.name}': the file does not say the shape of input '{unknown[0]}', not "
                "even its number of dimensions",
                key="input",
                hint="export the model with shapes; sizes that vary may be names, such as ['batch', 3]",
            )

    def _file(self) -> tuple[OnnxFile, Signature]:
        # Once for completion and comparison together: to describe a file is to load it. No `cached_property`: on Python
        # 3.11 one slow file would hold up the loads of all models.
        if self._opened is None:
            try:
                file = self._open_file(str(self._library), str(self.draft.model_file()))
            except ModelLoadError as error:
                error.hiding(self._private)
                raise
            self._opened = file, Signature.from_json(file.signature())
        return self._opened

    @property
    def _private(self) -> dict[str, str]:
        return {str(self._library): self._library.name, f"{self._library.parent}/": ""}


def engine_spec(config: ModelConfig, parameters: EngineParameters, cores: int) -> dict[str, Any]:
    """How ONNX Runtime runs a model, whatever its file.

    Args:
        config: The configuration, complete.
        parameters: What its parameters say.
        cores: Cores to share among the instances where the parameters give no number of threads.
    """
    threads = max(1, cores // len(instance_names(config)))
    gpu: dict[str, Any] = {"gpu_providers": [], "gpu_libraries": []}
    if is_on_gpu(config):
        libraries = [str(file) for file in find_gpu_libraries()]
        gpu = {"gpu_providers": gpu_providers(config, parameters.cuda), "gpu_libraries": libraries}
    return {
        "kind": "onnxruntime",
        "intra_op_threads": parameters.intra_op_threads or threads,
        "inter_op_threads": parameters.inter_op_threads or (threads if parameters.parallel else 1),
        "execution_mode": "parallel" if parameters.parallel else "sequential",
        "graph_optimization": _GRAPH_LEVELS.get(config.optimization.graph.level, "all"),
        "session_config": parameters.session_config,
        "memory_arena": parameters.memory_arena,
        **gpu,
    }


def _parameters(config: ModelConfig) -> EngineParameters:
    own = {key: value.string_value for key, value in config.parameters.items() if not key.startswith(TUNING_PREFIX)}
    return read_parameters(own, config.name)


def _default_max_batch_size(options: ModelOptions, signature: Signature) -> int:
    own = options.onnxruntime_default_max_batch_size
    return (
        rows_within(signature, options.default_max_batch_size, options.default_max_batch_bytes) if own is None else own
    )
