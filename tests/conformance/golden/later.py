"""The scenarios that are left for later, each with the feature that it waits for."""

from __future__ import annotations

from collections.abc import Mapping

_LOG = "log settings cannot be read or changed at run time yet"
_TRACE = "tracing is not there yet"

LATER: Mapping[str, str] = {
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
}
