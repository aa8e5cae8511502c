"""A model's configuration out of a document or a file, in PyTriton's words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alipes.compat.pytriton.datatypes import type_of
from alipes.compat.pytriton.exceptions import PyTritonModelConfigError
from alipes.compat.pytriton.settings import (
    DeviceKind,
    DynamicBatcher,
    ModelWarmup,
    QueuePolicy,
    TimeoutAction,
    WarmupInput,
)
from alipes.compat.pytriton.triton_model_config import ResponseCache, TensorSpec, TritonModelConfig

__all__ = ["ModelConfigParser"]

Document = Mapping[str, Any]


class ModelConfigParser:
    """Reads a model's configuration."""

    @classmethod
    def from_dict(cls, model_config_dict: Document) -> TritonModelConfig:
        """The configuration out of a document, as servers give it.

        Raises:
            PyTritonModelConfigError: If a tensor has no name, type or dimensions, or its type is unknown.
            TypeError: If the parameters are neither a list nor a dictionary.
        """
        document = model_config_dict
        rows = int(document.get("max_batch_size", 0))
        batching, cache, warmup = (document.get(key) for key in ("dynamic_batching", "response_cache", "model_warmup"))
        return TritonModelConfig(
            model_name=document["name"],
            batching=rows > 0,
            max_batch_size=rows,
            batcher=None if batching is None else _batcher(batching),
            inputs=_ports(document, "input"),
            outputs=_ports(document, "output"),
            instance_group={
                DeviceKind(group["kind"]): group.get("count") for group in document.get("instance_group", [])
            },
            decoupled=document.get("model_transaction_policy", {}).get("decoupled", False),
            backend_parameters=_parameters(document.get("parameters", [])),
            response_cache=ResponseCache(enable=bool(cache["enable"])) if cache else None,
            model_warmup=[_warmup(entry) for entry in warmup] if warmup else None,
        )

    @classmethod
    def from_file(cls, *, config_path: Path) -> TritonModelConfig:
        """The configuration out of a `config.pbtxt`; the same errors."""
        from google.protobuf import json_format, text_format

        from alipes.config.schema import new_config

        message = text_format.Parse(config_path.read_text(encoding="utf-8"), new_config())
        return cls.from_dict(json_format.MessageToDict(message, preserving_proto_field_name=True))

    @classmethod
    def rewrite_io_spec(cls, item: Document, io_type: str, idx: int) -> TensorSpec:
        """A tensor out of a document; the same errors.

        Args:
            item: The tensor's part of the configuration.
            io_type: `input` or `output`, for errors.
            idx: Its number among them, for errors.
        """
        name = item.get("name")
        if not name:
            raise PyTritonModelConfigError(f"Name for {io_type} at index {idx} not provided.")
        where = f"for {io_type} with name `{name}`"
        dtype = _dtype(item.get("data_type"), where, f"{where} not defined. The expected name is TYPE_{{type}}.")
        dims = item.get("dims", [])
        if not dims:
            raise PyTritonModelConfigError(f"Dimension {where} not defined.")
        shape = tuple(int(size) for size in dims)
        return TensorSpec(name=name, shape=shape, dtype=dtype, optional=item.get("optional", False))


def _dtype(datatype: str | None, where: str, invalid: str) -> Any:
    """The type for a datatype; errors say where it stands."""
    try:
        return type_of(datatype)
    except PyTritonModelConfigError as error:
        if not datatype:
            text = f"Data type {where} not defined."
        elif error.message.startswith("Invalid"):
            text = f"Invalid data type `{datatype}` {invalid}"
        else:
            text = f"Unsupported data type `{datatype}` {where}"
        raise PyTritonModelConfigError(text) from error


def _ports(document: Document, kind: str) -> list[TensorSpec] | None:
    ports = enumerate(document.get(kind, []))
    return [ModelConfigParser.rewrite_io_spec(item, kind, number) for number, item in ports] or None


def _parameters(parameters: Any) -> dict[str, str]:
    if isinstance(parameters, list):
        return dict.fromkeys(parameters, "")
    if isinstance(parameters, dict):
        return {name: value["string_value"] for name, value in parameters.items()}
    raise TypeError(f"Invalid type for backend_parameters_config: {type(parameters)}")


def _batcher(document: Document) -> DynamicBatcher:
    policy, policies = document.get("default_queue_policy"), document.get("priority_queue_policy")
    return DynamicBatcher(
        preferred_batch_size=document.get("preferred_batch_size"),
        max_queue_delay_microseconds=int(document.get("max_queue_delay_microseconds", 0)),
        preserve_ordering=bool(document.get("preserve_ordering", False)),
        priority_levels=int(document.get("priority_levels", 0)),
        default_priority_level=int(document.get("default_priority_level", 0)),
        default_queue_policy=_policy(policy) if policy else None,
        priority_queue_policy={int(level): _policy(one) for level, one in policies.items()} if policies else None,
    )


def _policy(document: Document) -> QueuePolicy:
    return QueuePolicy(
        timeout_action=TimeoutAction(document.get("timeout_action", TimeoutAction.REJECT.value)),
        default_timeout_microseconds=int(document.get("default_timeout_microseconds", 0)),
        allow_timeout_override=bool(document.get("allow_timeout_override", False)),
        max_queue_size=int(document.get("max_queue_size", 0)),
    )


def _warmup(document: Document) -> ModelWarmup:
    inputs = {name: _warmup_input(name, item) for name, item in document["inputs"].items()}
    return ModelWarmup(name=document["name"], batch_size=document["batch_size"], inputs=inputs, count=document["count"])


def _warmup_input(name: str, document: Document) -> WarmupInput:
    dtype = _dtype(document.get("data_type"), f"for {name}", f"for {name}.")
    shape = tuple(int(size) for size in document["dims"])
    if not shape:
        raise PyTritonModelConfigError(f"Dimension for {name} not defined.")
    return WarmupInput(
        dtype=dtype,
        shape=shape,
        zero_data=document.get("zero_data", False),
        random_data=document.get("random_data", False),
        input_data_file=document.get("input_data_file"),
    )
