"""The setup of a worker: the model, its folder, and the instance that this process runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from alipes.worker.frameworks.opened import Opening

__all__ = ["SCHEMA", "Instance", "Setup", "opening_of", "read_setup"]

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Instance:
    """Which instance this process is.

    Attributes:
        name: As it appears in errors, such as ``m_0_0``.
        index: Number of the instance.
        kind: ``CPU``, ``GPU`` or ``MODEL``.
        device_id: The device it is meant for.
    """

    name: str
    index: int
    kind: str
    device_id: int


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker runs.

    Attributes:
        instance: Which instance this process is.
        model_name: The model.
        model_version: Its version.
        model_file: The file that holds the class, absolute.
        version_directory: The folder whose modules the file may import, absolute.
        model_directory: The folder above the versions, absolute.
        model_config: The configuration as JSON, as `initialize` gets it.
        decoupled: Whether a request may have any number of responses.
        max_batch_size: Rows that an execution may have; 0 without a batch dimension.
        batches: Whether several requests are executed together.
        endpoint: Whether plain requests reach the model as calls.
        inputs: ``{"name": ..., "datatype": ...}`` of each declared input.
        outputs: The same of each output.
        framework: What opens the model file where it is no Python model, with the fields of `Framework` of
            `alipes.backends.python.setup`.
    """

    instance: Instance
    model_name: str
    model_version: int
    model_file: str
    version_directory: str
    model_directory: str
    model_config: str
    decoupled: bool
    max_batch_size: int
    batches: bool
    endpoint: bool
    inputs: list[dict[str, str]]
    outputs: list[dict[str, str]]
    framework: dict[str, Any] | None

    @classmethod
    def parse(cls, text: str) -> Setup:
        """Reads the document that the server wrote.

        Raises:
            ValueError: If it is of another schema than this worker's.
        """
        document = json.loads(text)
        setup: dict[str, Any] = document["setup"]
        if setup["schema"] != SCHEMA:
            raise ValueError(f"the worker's setup has schema {setup['schema']}, this worker knows {SCHEMA}")
        instance = Instance(**{field.name: document["instance"][field.name] for field in fields(Instance)})
        return cls(instance, **{field.name: setup[field.name] for field in fields(cls) if field.name != "instance"})

    def declaration(self) -> str:
        """What the link has to know, as JSON."""
        return json.dumps(
            {
                "instance": self.instance.name,
                "model": self.model_name,
                "inputs": self.inputs,
                "outputs": self.outputs,
                "decoupled": self.decoupled,
                "endpoint": self.endpoint,
                "iterative": self._is_iterative(),
                "max_rows": self.max_batch_size if self.batches else 0,
            }
        )

    def _is_iterative(self) -> bool:
        """Whether the model may ask for another round of a request."""
        config: dict[str, Any] = json.loads(self.model_config)
        sequences: dict[str, Any] = config.get("sequence_batching") or {}
        return bool(sequences.get("iterative_sequence"))

    def opening(self) -> Opening:
        """What a framework's program is given."""
        device = f"cuda:{self.instance.device_id}" if self.instance.kind == "GPU" else "cpu"
        return opening_of(asdict(self), device)

    def arguments(self) -> dict[str, str]:
        """What `initialize` gets."""
        return {
            "model_config": self.model_config,
            "model_instance_kind": self.instance.kind,
            "model_instance_name": self.instance.name,
            "model_instance_device_id": str(self.instance.device_id),
            "model_repository": self.model_directory,
            "model_version": str(self.model_version),
            "model_name": self.model_name,
        }


def opening_of(setup: Mapping[str, Any], device: str = "cpu") -> Opening:
    """What a framework's program is given.

    Args:
        setup: The server's document, or the fields of a `Setup`.
        device: Where the model is to run.
    """
    framework = setup["framework"]
    allows, adapts = bool(framework["allows_pickles"]), bool(framework["adapts_threads"])
    config = json.loads(setup["model_config"])
    return Opening(setup["model_name"], Path(setup["model_file"]), config, device, allows, adapts)


def read_setup(descriptor: int) -> Setup:
    """Reads a setup from a descriptor, and closes it."""
    with os.fdopen(descriptor, "rb") as file:
        return Setup.parse(file.read().decode())
