"""Holds a configuration against the table of fields: notices for what is ignored, an error for what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from alipes.config.fields import Field, find_field
from alipes.config.instances import is_on_gpu
from alipes.config.options import ServerOptions
from alipes.config.schema import ModelConfig, is_map, is_repeated
from alipes.config.validate.sequences import refuse_ragged_sequences
from alipes.errors import ConfigError

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

__all__ = ["HISTOGRAMS", "check_support", "missing_servants", "unknown_families"]

HISTOGRAMS: Final = ("nv_inference_first_response_histogram_ms",)
"""Families whose buckets a model may choose."""


def check_support(config: ModelConfig) -> list[str]:
    """Refuse what a configuration asks for and would not get.

    Args:
        config: The configuration, checked in Triton's words already.

    Returns:
        One notice for each field that is set and does nothing here.

    Raises:
        ConfigError: If a refused field is set to anything but its default.
    """
    refuse_ragged_sequences(config)
    rows = list(dict.fromkeys(_unsupported(config, "")))
    for row in rows:
        if row.status == "refused":
            raise ConfigError(
                f"field '{row.path}' of model '{config.name}' is not supported: {row.note}",
                key=row.path,
                code="UNSUPPORTED",
            )
    return [f"field '{row.path}' of model '{config.name}' is ignored: {row.note}" for row in rows]


def unknown_families(config: ModelConfig) -> list[str]:
    """One notice for each family of metrics that a configuration wants to set and that there is not."""
    known = ", ".join(HISTOGRAMS)
    families = [control.metric_identifier.family for control in config.model_metrics.metric_control]
    return [
        f"model_metrics of model '{config.name}' names '{family}', which is no histogram: {known} is"
        for family in families
        if family not in HISTOGRAMS
    ]


def missing_servants(config: ModelConfig, options: ServerOptions) -> list[str]:
    """One notice for each feature that a model asks for and that it does not get: from the flags, or on its device."""
    notices = []
    if config.optimization.execution_accelerators.gpu_execution_accelerator and not (
        config.backend == "onnxruntime" and is_on_gpu(config)
    ):
        notices.append(
            f"optimization.execution_accelerators.gpu_execution_accelerator of model '{config.name}' does nothing: it "
            "is for instances of ONNX models on a GPU"
        )
    if config.response_cache.enable and not options.response_cache_bytes:
        notices.append(
            f"response_cache of model '{config.name}' does nothing: start the server with --cache-config=local,size=..."
        )
    takes = any(group.rate_limiter.resources for group in config.instance_group)
    if takes and options.model.rate_limit == "off":
        notices.append(
            f"instance_group.rate_limiter of model '{config.name}' does nothing: start the server with "
            "--rate-limit=execution_count"
        )
    return notices


def _unsupported(message: ModelConfig, prefix: str) -> Iterator[Field]:
    """The rows of the outermost fields that are set and do not work."""
    for descriptor, value in message.ListFields():
        path = prefix + descriptor.name
        row = find_field(path)
        if row.status == "refused" and _says_nothing(descriptor, value):
            continue
        if row.status != "works":
            yield row
        else:
            for part in _parts(descriptor, value):
                yield from _unsupported(part, f"{path}.")


def _says_nothing(descriptor: FieldDescriptor, value: ModelConfig) -> bool:
    """Whether a part is there and empty: it asks for nothing that could be missed."""
    return descriptor.message_type is not None and not is_repeated(descriptor) and value.ByteSize() == 0


def _parts(descriptor: FieldDescriptor, value: ModelConfig) -> list[ModelConfig]:
    """The messages in a field's value, to look into."""
    if descriptor.message_type is None:
        return []
    if is_map(descriptor):
        inner = descriptor.message_type.fields_by_name["value"].message_type
        return list(value.values()) if inner is not None else []
    return list(value) if is_repeated(descriptor) else [value]
