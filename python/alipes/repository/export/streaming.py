"""Snapshotters and averagers that the server itself runs: nothing to write but what they are."""

from __future__ import annotations

from typing import Any, ClassVar

from alipes.config.streaming_states import STREAM_IDLE_US, declare_states
from alipes.repository.declare import datatype_number, declare
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.platform import Platform, conventions
from alipes.repository.streaming.sizes import Means, Windows

__all__ = ["AveragerExporter", "SnapshotterExporter"]


class SnapshotterExporter(Exporter):
    """Writes a version of a snapshotter."""

    platform: ClassVar[Platform] = Platform.SNAPSHOTTER

    @classmethod
    def handles(cls, source: Any) -> bool:
        """The sizes of windows."""
        return isinstance(source, Windows)

    def export(self, source: Windows, request: ExportRequest) -> None:
        """Declare the tensors, which say all."""
        outputs = source.output_shapes
        declare(request.config._proto, "input", {"snapshot_update": source.update_shape}, [source.datatype])
        declare(request.config._proto, "output", outputs, dict.fromkeys(outputs, source.datatype))
        _declare_states(request, source)
        _leave_file(request)


class AveragerExporter(Exporter):
    """Writes a version of an averager."""

    platform: ClassVar[Platform] = Platform.AVERAGER

    @classmethod
    def handles(cls, source: Any) -> bool:
        """The sizes of means."""
        return isinstance(source, Means)

    def export(self, source: Means, request: ExportRequest) -> None:
        """Declare the tensors, and how many predictions make a mean, which they do not say."""
        declare(request.config._proto, "input", {"update": source.update_shape}, [source.datatype])
        declare(request.config._proto, "output", {"output_stream": source.output_shape}, [source.datatype])
        request.config.parameters["num_updates"].string_value = str(source.updates)
        if source.unbiased:
            request.config.parameters["unbiased_start"].string_value = "1"
        _declare_states(request, source)
        _leave_file(request)


def _declare_states(request: ExportRequest, source: Windows | Means) -> None:
    """List what is kept, by which clients of hermes know a stream."""
    proto = request.config._proto
    if not proto.HasField("sequence_batching"):
        proto.sequence_batching.direct.SetInParent()
        proto.sequence_batching.max_sequence_idle_microseconds = STREAM_IDLE_US
    declare_states(proto.sequence_batching, source.states, datatype_number(source.datatype))


def _leave_file(request: ExportRequest) -> None:
    """Every store keeps the version's folder where there is a file in it."""
    (request.folder / conventions[Platform(request.config.platform)]).touch()
