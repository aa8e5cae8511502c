"""The setup of a Python model's process: one JSON document, read by `alipes.worker`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from alipes.backends.base import Draft
from alipes.config.datatypes import v2_name
from alipes.config.render import config_json
from alipes.config.schema import ModelConfig
from alipes.config.sequences import hidden_state_outputs

__all__ = ["worker_setup"]

SCHEMA: Final = 1
"""Version of the document; the process refuses any other."""


def worker_setup(draft: Draft) -> dict[str, Any]:
    """The document for one version; `model_config` is what the model finds in its arguments.

    Raises:
        ConfigError: If there is no model file, or its name leads out of the folder.
    """
    config = draft.config
    return {
        "schema": SCHEMA,
        "model_name": config.name,
        "model_version": draft.version,
        "model_file": str(draft.model_file()),
        "version_directory": str(draft.version_folder),
        "model_directory": str(draft.folder),
        "model_config": config_json(config),
        "decoupled": config.model_transaction_policy.decoupled,
        "max_batch_size": config.max_batch_size,
        "batches": config.WhichOneof("scheduling_choice") is not None and config.max_batch_size > 0,
        "inputs": _ports(config.input),
        "outputs": [*_ports(config.output), *_states(config)],
    }


def _states(config: ModelConfig) -> list[dict[str, str]]:
    """Outputs that renew what the server keeps for a sequence, and that callers do not see."""
    states = hidden_state_outputs(config)
    return [{"name": state.output_name, "datatype": v2_name(state.data_type)} for state in states]


def _ports(tensors: Iterable[ModelConfig]) -> list[dict[str, str]]:
    return [{"name": tensor.name, "datatype": v2_name(tensor.data_type)} for tensor in tensors]
