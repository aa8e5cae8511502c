"""The setup of a Python model's process: one JSON document, read by `alipes.worker`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from alipes.backends.base import Draft
from alipes.config.call_endpoint import has_call_endpoint
from alipes.config.datatypes import v2_name
from alipes.config.render import config_json
from alipes.config.schema import ModelConfig
from alipes.config.sequences import hidden_state_outputs

__all__ = ["Framework", "worker_setup"]

SCHEMA: Final = 1
"""Version of the document; the process refuses any other."""


@dataclass(frozen=True, slots=True)
class Framework:
    """What opens a model file that is no Python model.

    Attributes:
        program: The module that the process imports, and calls `open_model` of.
        extra: The extra of alipes, or the package, that brings what the module needs.
        allows_pickles: Whether the file may run code while it is read.
        adapts_threads: Whether executions may take fewer threads than the process is given.
    """

    program: str
    extra: str
    allows_pickles: bool
    adapts_threads: bool


def worker_setup(draft: Draft, file: Path | str | None = None, framework: Framework | None = None) -> dict[str, Any]:
    """The document for one version; `model_config` is what the model finds in its arguments.

    Args:
        draft: The version.
        file: The model file, absolute, or what stands for it in log lines where there is none; the one that the
            configuration names where left out.
        framework: What opens the model file; `None` where it is a Python model.

    Raises:
        ConfigError: If there is no model file, or its name leads out of the folder.
    """
    config = draft.config
    return {
        "schema": SCHEMA,
        "model_name": config.name,
        "model_version": draft.version,
        "model_file": str(draft.model_file() if file is None else file),
        "version_directory": str(draft.version_folder),
        "model_directory": str(draft.folder),
        "model_config": config_json(config),
        "decoupled": config.model_transaction_policy.decoupled,
        "max_batch_size": config.max_batch_size,
        "batches": config.WhichOneof("scheduling_choice") is not None and config.max_batch_size > 0,
        "endpoint": has_call_endpoint(config),
        "inputs": _ports(config.input),
        "outputs": [*_ports(config.output), *_states(config)],
        "framework": asdict(framework) if framework is not None else None,
    }


def _states(config: ModelConfig) -> list[dict[str, str]]:
    """Outputs that renew what the server keeps for a sequence, and that callers do not see."""
    states = hidden_state_outputs(config)
    return [{"name": state.output_name, "datatype": v2_name(state.data_type)} for state in states]


def _ports(tensors: Iterable[ModelConfig]) -> list[dict[str, str]]:
    return [{"name": tensor.name, "datatype": v2_name(tensor.data_type)} for tensor in tensors]
