"""Fills in the defaults that Triton shows in the configuration it answers."""

from __future__ import annotations

from typing import Final, Literal

from alipes.config.gpus import NO_GPUS, Gpus, GpuUse
from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig

__all__ = ["normalize", "normalize_batching", "normalize_instance_groups"]

_DEFAULT_IDLE_US: Final = 1_000_000
_NATIVE_STEPS: Final = ("detokenizer", "mean_pooling", "picture", "softmax", "tokenizer", "top_k")
_TWO_ON_CPU: Final = ("onnxruntime", "tensorflow", *_NATIVE_STEPS)
"""Backends that get two instances on the CPU where the configuration gives no count: as many for a step as for the
network beside it, so that neither waits for the other."""


def normalize(config: ModelConfig) -> None:
    """Fill in, in place, what is known before a version is looked at."""
    if not config.HasField("version_policy"):
        config.version_policy.latest.num_versions = 1
    normalize_batching(config)
    if config.platform == ENSEMBLE:
        config.model_transaction_policy.SetInParent()
        return
    for name in ("input_pinned_memory", "output_pinned_memory"):
        if not config.optimization.HasField(name):
            getattr(config.optimization, name).enable = True


def normalize_batching(config: ModelConfig) -> None:
    """Fill in the scheduler's defaults, in place; again after completion from the model file."""
    if config.HasField("dynamic_batching"):
        _prefer_largest(config, config.dynamic_batching)
    elif config.HasField("sequence_batching"):
        sequences = config.sequence_batching
        if sequences.max_sequence_idle_microseconds == 0:
            sequences.max_sequence_idle_microseconds = _DEFAULT_IDLE_US
        if sequences.HasField("oldest"):
            _prefer_largest(config, sequences.oldest)


def normalize_instance_groups(
    config: ModelConfig, gpu_fallback: Literal["cpu", "refuse"], gpus: Gpus = NO_GPUS
) -> list[str]:
    """Name the instance groups and settle kind, GPUs and count, in place.

    A group without a name becomes `<model>_<i>`; a model without groups gets one, named like the model. KIND_AUTO is a
    GPU where there is one and the backend prefers it, or the group names GPUs that there are; else the CPU. KIND_GPU is
    the CPU too where there is no GPU and that is wanted. A group on GPUs that names none is on all of them.

    Args:
        config: The configuration.
        gpu_fallback: Without a GPU, `cpu` moves groups for GPUs to the CPU, `refuse` leaves them for the checks to
            refuse.
        gpus: The GPUs that its instances can have.

    Returns:
        A notice for each group that was moved.
    """
    notices = []
    if not config.instance_group:
        config.instance_group.add(name=config.name)
    for index, group in enumerate(config.instance_group):
        group.name = group.name or f"{config.name}_{index}"
        if group.kind == group.KIND_AUTO and gpus.has(group.gpus) and (group.gpus or gpus.use is GpuUse.PREFERRED):
            group.kind = group.KIND_GPU
        if gpu_fallback == "cpu" and _lacks_its_gpu(group, gpus):
            group.kind = group.KIND_CPU
            group.count = max(group.count, 1)
            del group.gpus[:]
            notices.append(f"instance group {group.name} of model {config.name} asks for a GPU and runs on the CPU")
        if group.kind == group.KIND_AUTO:
            group.kind = group.KIND_CPU
        if group.kind == group.KIND_GPU and not group.gpus:
            group.gpus.extend(gpus.numbers)
        if group.count < 1:
            group.count = 2 if group.kind == group.KIND_CPU and config.backend in _TWO_ON_CPU else 1
    return notices


def _lacks_its_gpu(group: ModelConfig, gpus: Gpus) -> bool:
    """Whether a group asks for a GPU and has to do without: one that names GPUs which are not there is refused."""
    if group.kind == group.KIND_GPU:
        return not gpus.numbers
    return bool(group.kind == group.KIND_AUTO and group.gpus)


def _prefer_largest(config: ModelConfig, batching: ModelConfig) -> None:
    if not batching.preferred_batch_size and config.max_batch_size > 0:
        batching.preferred_batch_size.append(config.max_batch_size)
