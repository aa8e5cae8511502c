"""The scenarios that are left for later, each with the feature that it waits for."""

from __future__ import annotations

from collections.abc import Mapping

_SEES_REQUEST = "the model tells what it sees of its request: needs the Python backend"
_OPTIONAL = "the model runs without one of its inputs: needs the Python backend"
_CONFIG = "the configuration of a Python model: needs the Python backend"
_LOG = "log settings cannot be read or changed at run time yet"
_TRACE = "tracing is not there yet"

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
            "grpc_control.metadata.log_get",
            "grpc_control.metadata.log_set",
            "grpc_control.metadata.log_format",
            "grpc_control.metadata.log_format_bad",
            "grpc_control.metadata.log_file",
            "grpc_control.metadata.log_kind",
        ),
        "log settings at run time are not offered yet",
    ),
    **dict.fromkeys(
        (
            "grpc_control.metadata.trace_get",
            "grpc_control.metadata.trace_unknown_model",
            "grpc_control.metadata.trace_rate",
            "grpc_control.metadata.trace_rate_two",
            "grpc_control.metadata.trace_level_no_file",
            "grpc_control.metadata.trace_file",
        ),
        "traces are not offered yet",
    ),
    **dict.fromkeys(
        (
            "http_control.metadata.config_optional",
            "http_control.metadata.config_verbatim",
            "grpc_control.metadata.config_optional",
        ),
        _CONFIG,
    ),
    **dict.fromkeys(
        (
            "grpc_control.metadata.log_get",
            "grpc_control.metadata.log_set",
            "grpc_control.metadata.log_format",
            "grpc_control.metadata.log_format_bad",
            "grpc_control.metadata.log_file",
            "grpc_control.metadata.log_kind",
        ),
        _LOG,
    ),
    **dict.fromkeys(
        (
            "grpc_control.metadata.trace_get",
            "grpc_control.metadata.trace_unknown_model",
            "grpc_control.metadata.trace_rate",
            "grpc_control.metadata.trace_rate_two",
            "grpc_control.metadata.trace_level_no_file",
            "grpc_control.metadata.trace_file",
        ),
        _TRACE,
    ),
    **dict.fromkeys(
        (
            "lifecycle.explicit.python",
            "lifecycle.failures.init_raises",
            "lifecycle.failures.grpc",
            "lifecycle.mixed.index",
        ),
        "a Python model is loaded: needs the Python backend",
    ),
    **dict.fromkeys(
        (
            "lifecycle.explicit.ensemble",
            "lifecycle.explicit.ensemble_dependents",
            "lifecycle.failures.chain_broken",
            "lifecycle.failures.chain_missing",
            "lifecycle.failures.chain_unmapped",
            "lifecycle.failures.chain_shape",
        ),
        "ensembles are not offered yet",
    ),
    "lifecycle.explicit.load_file": "files that come with a load request are not offered yet",
    "http_infer.json.optional_only": "the model raises: needs the Python backend",
    "http_infer.strings.python_not_utf8_json": "the bytes of its answer name the model: needs the Python backend",
    "grpc_infer.basics.deadline": "the model sleeps: needs the Python backend",
}
