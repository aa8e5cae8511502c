"""A model's configuration as a document, and as a file: the fields of `config.pbtxt` out of PyTriton's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alipes.compat.pytriton.datatypes import config_datatype
from alipes.compat.pytriton.exceptions import PyTritonBadParameterError
from alipes.compat.pytriton.settings import DynamicBatcher, ModelWarmup, QueuePolicy, WarmupInput
from alipes.compat.pytriton.triton_model_config import TensorSpec, TritonModelConfig

__all__ = ["ModelConfigGenerator"]

Document = dict[str, Any]


class ModelConfigGenerator:
    """Writes a model's configuration."""

    def __init__(self, config: TritonModelConfig) -> None:
        """Takes the configuration."""
        self._config = config

    def get_config(self) -> Document:
        """The configuration as a document, with the names that JSON forms of the message may have.

        Raises:
            PyTritonBadParameterError: If settings do not go together.
        """
        config = self._config
        document: Document = {"name": config.model_name, "backend": config.backend}
        document |= _batching(config)
        if config.inputs:
            document["input"] = [_port(spec) for spec in config.inputs]
        if config.outputs:
            document["output"] = _outputs(config.outputs)
        if config.instance_group:
            document["instance_group"] = [
                {"count": count, "kind": kind.value} for kind, count in config.instance_group.items()
            ]
        if config.decoupled:
            document["model_transaction_policy"] = {"decoupled": True}
        if config.backend_parameters:
            document["parameters"] = {
                name: {"string_value": str(value)} for name, value in config.backend_parameters.items()
            }
        if config.response_cache:
            document["response_cache"] = {"enable": config.response_cache.enable}
        if config.model_warmup:
            document["model_warmup"] = [_warmup(warmup) for warmup in config.model_warmup]
        return document

    def to_file(self, config_path: Path | str) -> Any:
        """Write the configuration as text of protobuf; folders are made. Gives the message that was written."""
        from google.protobuf import json_format, text_format

        from alipes.config.schema import new_config

        document = self.get_config()
        message = json_format.ParseDict(document, new_config())
        text = text_format.MessageToString(message)
        if not document["max_batch_size"]:
            text += "max_batch_size: 0\n"  # protobuf leaves out what is the default, and the server would complete it
        path = Path(config_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return message


def _batching(config: TritonModelConfig) -> Document:
    if not config.batching:
        return {"max_batch_size": 0}
    if config.max_batch_size < 1:
        raise PyTritonBadParameterError("The `max_batch_size` must be greater or equal to 1.")
    document: Document = {"max_batch_size": config.max_batch_size}
    if isinstance(config.batcher, DynamicBatcher):
        document["dynamic_batching"] = _batcher(config.batcher)
    return document


def _batcher(batcher: DynamicBatcher) -> Document:
    document: Document = {}
    if batcher.max_queue_delay_microseconds > 0:
        document["maxQueueDelayMicroseconds"] = int(batcher.max_queue_delay_microseconds)
    if batcher.preferred_batch_size:
        document["preferredBatchSize"] = [int(size) for size in batcher.preferred_batch_size]
    if batcher.preserve_ordering:
        document["preserveOrdering"] = batcher.preserve_ordering
    levels = batcher.priority_levels
    if levels:
        document["priorityLevels"] = levels
    if batcher.default_priority_level:
        if batcher.default_priority_level > levels:
            raise PyTritonBadParameterError(f"The `default_priority_level` must be between 1 and {levels}.")
        document["defaultPriorityLevel"] = batcher.default_priority_level
    if batcher.default_queue_policy:
        document["defaultQueuePolicy"] = _policy(batcher.default_queue_policy)
    if batcher.priority_queue_policy:
        document["priorityQueuePolicy"] = _level_policies(batcher.priority_queue_policy, levels)
    return document


def _level_policies(policies: dict[int, QueuePolicy], levels: int) -> Document:
    if not levels:
        raise PyTritonBadParameterError(
            "Provide the `priority_levels` if you want to define `priority_queue_policy` for Dynamic Batching."
        )
    for level in policies:
        if not 0 <= level <= levels:
            raise PyTritonBadParameterError(
                f"Invalid `priority`={level} provided. The value must be between 1 and {levels}."
            )
    return {level: _policy(policy) for level, policy in policies.items()}  # type: ignore[misc]  # as its dictionary has


def _policy(policy: QueuePolicy) -> Document:
    return {
        "timeoutAction": policy.timeout_action.value,
        "defaultTimeoutMicroseconds": int(policy.default_timeout_microseconds),
        "allowTimeoutOverride": policy.allow_timeout_override,
        "maxQueueSize": int(policy.max_queue_size),
    }


def _outputs(specs: Any) -> list[Document]:
    ports = [_port(spec) for spec in specs]
    optional = [port["name"] for port in ports if port.get("optional")]
    if optional:
        raise PyTritonBadParameterError(
            f"Optional flag for outputs is not supported. Outputs marked as optional: {', '.join(optional)}."
        )
    return ports


def _port(spec: TensorSpec) -> Document:
    port: Document = {"name": spec.name, "dims": list(spec.shape), "data_type": config_datatype(spec.dtype)}
    if spec.optional:
        port["optional"] = True
    return port


def _warmup(warmup: ModelWarmup) -> Document:
    inputs = {name: _warmup_input(name, spec) for name, spec in warmup.inputs.items()}
    return {"name": warmup.name, "batch_size": warmup.batch_size, "inputs": inputs, "count": warmup.count}


def _warmup_input(name: str, spec: WarmupInput) -> Document:
    source = next((key for key in ("zero_data", "random_data", "input_data_file") if getattr(spec, key)), None)
    if source is None:
        raise PyTritonBadParameterError(
            f"One of the `zero_data`, `random_data`, or `input_data_file` must be provided for warmup input `{name}`."
        )
    shape = list(spec.shape)
    if not shape:
        raise PyTritonBadParameterError(f"Dimension for {name} not defined.")
    value = spec.input_data_file if source == "input_data_file" else True
    return {"data_type": config_datatype(spec.dtype), "dims": shape, source: value}
