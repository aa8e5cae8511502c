"""Reads how CloudEvents are answered, from the variables of KServe's Python server."""

from __future__ import annotations

from collections.abc import Mapping

from alipes.config.record_options import CloudEventOptions

__all__ = ["read_cloud_events"]


def read_cloud_events(environ: Mapping[str, str]) -> CloudEventOptions:
    """What `CE_MERGE`, `CE_TYPE` and `CE_SOURCE` say."""
    return CloudEventOptions(
        merge=environ.get("CE_MERGE", "").lower() == "true",
        kind=environ.get("CE_TYPE"),
        source=environ.get("CE_SOURCE"),
    )
