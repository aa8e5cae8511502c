"""Turns a complete configuration into the specification of one version for the data plane."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from alipes.config.call_endpoint import read_call_endpoint
from alipes.config.datatypes import v2_name
from alipes.config.instances import instance_names, instances_of, placements
from alipes.config.paths import confined, kind_of, read_regular
from alipes.config.render import config_json
from alipes.config.schema import ModelConfig, enum_word
from alipes.config.sequences import sequence_scheduling
from alipes.config.tuning import read_tuning
from alipes.errors import ConfigError

__all__ = ["NOT_HELD", "Held", "available_cores", "model_path", "to_spec"]

SCHEMA: Final = 1
"""Version of the document; the data plane refuses any other."""


def available_cores() -> int:
    """Cores that this process may use; at least 1."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not offered by this system
        return os.cpu_count() or 1


class Held(NamedTuple):
    """What waits before the first batch of a model, for tests.

    Attributes:
        requests: Requests, where sequences have slots those of sequences that have one.
        backlog: Requests of sequences that wait for a slot, besides.
    """

    requests: int = 0
    backlog: int = 0


NOT_HELD: Final = Held()
"""No batch waits for the first ones."""


def to_spec(
    config: ModelConfig,
    version: int,
    folder: Path,
    engine: Mapping[str, Any],
    *,
    namespace: str = "",
    held: Held = NOT_HELD,
) -> dict[str, Any]:
    """The specification of one version of a model.

    Args:
        config: The configuration: normalised, complete and checked.
        version: The version.
        folder: The model's folder.
        engine: What runs it, as its backend says.
        namespace: The repository of the model, where names are unique in a repository alone.
        held: What waits before the first batch, where batches are formed.

    Raises:
        ConfigError: If a label file cannot be read, the model cannot have the endpoint that it asks for, or it cannot
            be tuned as it asks for.
    """
    return {
        "endpoint": read_call_endpoint(config) if engine.get("kind") == "worker" else None,
        "schema": SCHEMA,
        "name": config.name,
        "namespace": namespace,
        "version": version,
        "platform": config.platform or config.backend,
        "max_batch_size": config.max_batch_size,
        "inputs": [_input(tensor) for tensor in config.input],
        "outputs": [_output(tensor, folder) for tensor in config.output],
        "batch_inputs": [
            {
                "kind": enum_word(made, "kind").lower(),
                "targets": list(made.target_name),
                "datatype": v2_name(made.data_type),
                "source": made.source_input[0],
            }
            for made in config.batch_input
        ],
        "batch_outputs": [
            {"targets": list(made.target_name), "source": made.source_input[0]} for made in config.batch_output
        ],
        "decoupled": config.model_transaction_policy.decoupled,
        "response_cache": config.response_cache.enable,
        "scheduling": _scheduling(config, folder, held, engine),
        "tuning": read_tuning(config),
        "instances": instance_names(config),
        "passive_instances": [instance.name for instance in instances_of(config, passive=True)],
        "placements": placements(config),
        "limits": [_limit(instance.group.rate_limiter) for instance in instances_of(config)],
        "warmup": [_sample(sample, folder) for sample in config.model_warmup if sample.batch_size],
        "engine": dict(engine),
        "config_json": config_json(config),
        "config_proto": base64.b64encode(config.SerializeToString(deterministic=True)).decode("ascii"),
        "metric_tags": dict(config.metric_tags),
        "histogram_buckets": {
            control.metric_identifier.family: list(control.histogram_options.buckets)
            for control in config.model_metrics.metric_control
        },
    }


def model_path(config: ModelConfig, folder: Path, version: int) -> Path:
    """The model file of a version; where its name is a folder, the file of that name inside it.

    Raises:
        ConfigError: If there is no such file, it is no regular one, or the name leads out of the folder.
    """
    path = confined(folder.absolute() / str(version), config.default_model_filename, "default_model_filename")
    if kind_of(path) == "folder":
        path = path / path.name
    kind = kind_of(path)
    if kind == "nothing":
        raise ConfigError(f"failed to stat file {path}", path=path, key="default_model_filename", code="INTERNAL")
    if kind != "file":  # to open a pipe would wait for its writer
        raise ConfigError(f"{path} is no regular file", path=path, key="default_model_filename", code="INTERNAL")
    return path


def _scheduling(config: ModelConfig, folder: Path, held: Held, engine: Mapping[str, Any]) -> dict[str, Any]:
    if config.HasField("sequence_batching"):
        waits = {"held_until": held.requests, "held_until_backlog": held.backlog}
        # A streaming model keeps its states itself: those in its configuration tell clients of them.
        own: dict[str, Any] = {"states": []} if engine.get("kind") == "streaming" else {}
        return sequence_scheduling(config, folder) | waits | own
    batching = config.dynamic_batching
    if not config.HasField("dynamic_batching") or (config.max_batch_size < 1 and batching.ByteSize() == 0):
        return {"kind": "direct"}
    return {
        "kind": "dynamic",
        "preferred_batch_sizes": list(batching.preferred_batch_size),
        "max_queue_delay_us": batching.max_queue_delay_microseconds,
        "preserve_ordering": batching.preserve_ordering,
        "priority_levels": batching.priority_levels,
        "default_priority_level": batching.default_priority_level,
        "default_queue_policy": _queue_policy(batching.default_queue_policy),
        "priority_queue_policies": [
            {"level": level, "policy": _queue_policy(batching.priority_queue_policy[level])}
            for level in sorted(batching.priority_queue_policy)
        ],
        "held_until": held.requests,
    }


def _queue_policy(policy: ModelConfig) -> dict[str, Any]:
    return {
        "delay": policy.timeout_action == policy.DELAY,
        "default_timeout_us": policy.default_timeout_microseconds,
        "allow_timeout_override": policy.allow_timeout_override,
        "max_queue_size": policy.max_queue_size,
    }


def _limit(limiter: ModelConfig) -> dict[str, Any]:
    resources = [
        {"name": resource.name, "global": getattr(resource, "global"), "count": resource.count}
        for resource in limiter.resources
    ]
    return {"resources": resources, "priority": limiter.priority}


def _sample(sample: ModelConfig, folder: Path) -> dict[str, Any]:
    inputs = [_sample_input(name, sample.inputs[name], folder) for name in sorted(sample.inputs)]
    return {"name": sample.name, "batch_size": sample.batch_size, "count": sample.count, "inputs": inputs}


def _sample_input(name: str, sample: ModelConfig, folder: Path) -> dict[str, Any]:
    source = sample.WhichOneof("input_data_type")
    data: dict[str, Any] = {"kind": "random" if source == "random_data" else "zero"}
    if source == "input_data_file":
        path = confined(folder / "warmup", sample.input_data_file, "model_warmup.inputs.input_data_file")
        data = {"kind": "file", "path": str(path.absolute())}
    return {"name": name, "datatype": v2_name(sample.data_type), "dims": list(sample.dims), "data": data}


def _input(tensor: ModelConfig) -> dict[str, Any]:
    return {**_port(tensor), "optional": tensor.optional, "allow_ragged_batch": tensor.allow_ragged_batch}


def _output(tensor: ModelConfig, folder: Path) -> dict[str, Any]:
    return {**_port(tensor), "labels": _labels(folder, tensor.label_filename) if tensor.label_filename else []}


def _port(tensor: ModelConfig) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "datatype": v2_name(tensor.data_type),
        "dims": list(tensor.dims),
        "reshape": list(tensor.reshape.shape) if tensor.HasField("reshape") else None,
    }


def _labels(folder: Path, name: str) -> list[str]:
    """The lines of a label file, by index."""
    path = confined(folder, name, "output.label_filename")
    try:
        return read_regular(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"failed to open text file for read {path}: {getattr(error, 'strerror', None) or error}",
            path=path,
            key="output.label_filename",
            code="INTERNAL",
        ) from error
