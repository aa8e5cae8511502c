"""The scenarios that are left for later, each with the feature that it waits for."""

from __future__ import annotations

from collections.abc import Mapping

_SEES_REQUEST = "the model tells what it sees of its request: needs the Python backend"
_OPTIONAL = "the model runs without one of its inputs: needs the Python backend"
_CONFIG = "the configuration of a Python model: needs the Python backend"

LATER: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "http_infer.json.output_not_made",
            "http_infer.parameters.none",
            "http_infer.parameters.kinds",
            "http_infer.parameters.sequence",
            "http_infer.parameters.sequence_string",
            "http_infer.parameters.priority",
            "http_infer.parameters.timeout",
            "http_infer.parameters.id_and_parameters",
            "http_infer.parameters.requested_outputs",
            "http_infer.parameters.not_forwarded",
            "grpc_infer.parameters.none",
            "grpc_infer.parameters.kinds",
            "grpc_infer.parameters.final",
            "grpc_infer.parameters.sequence",
            "grpc_infer.parameters.sequence_string",
            "grpc_infer.parameters.priority",
            "grpc_infer.parameters.timeout",
            "grpc_infer.parameters.metadata",
        ),
        _SEES_REQUEST,
    ),
    **dict.fromkeys(("http_infer.json.optional_absent", "grpc_infer.basics.optional"), _OPTIONAL),
    **dict.fromkeys(
        (
            "http_control.metadata.config_optional",
            "http_control.metadata.config_verbatim",
            "grpc_control.metadata.config_optional",
        ),
        _CONFIG,
    ),
    "http_infer.json.optional_only": "the model raises: needs the Python backend",
    "grpc_infer.basics.deadline": "the model sleeps: needs the Python backend",
}
