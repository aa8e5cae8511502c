"""The repository: one network, and an ensemble for each way to stream through it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from alipes import repository as qv
from network import network
from strain import RATE_HZ

IDLE_US = 600_000_000


@dataclass(frozen=True)
class Way:
    """How a stream goes through the network.

    Attributes:
        rate: Predictions for a second of data.
        strides: Predictions of one update: how many of them a request brings.
        cover: Predictions that make a mean.
    """

    rate: int
    strides: int
    cover: int

    @property
    def name(self) -> str:
        """The ensemble's."""
        return f"clean-{self.rate}-{self.strides}-{self.cover}"

    @property
    def stride(self) -> int:
        """Samples from a prediction to the next one."""
        return RATE_HZ // self.rate

    @property
    def delay_samples(self) -> int:
        """How far the means are behind the data."""
        return (self.cover - 1) * self.stride


def export(folder: Path, ways: Iterable[Way]) -> None:
    """Writes it."""
    repo = qv.ModelRepository(folder, clean=True)
    noise = repo.add("noise", platform=qv.Platform.ONNX)
    noise.export_version(network())
    # A core for each server: several of them share this machine.
    noise.config.parameters["intra_op_thread_count"].string_value = "1"
    noise.config.write()
    for way in dict.fromkeys(ways):
        ensemble = repo.add(way.name, platform=qv.Platform.ENSEMBLE)
        ensemble.add_streaming_inputs(noise.inputs["witnesses"], way.stride, way.strides, name=f"{way.name}-windows")
        ensemble.add_streaming_output(
            noise.outputs["noise"], way.stride, way.cover, way.strides, name=f"{way.name}-mean"
        )
        ensemble.export_version(None)
        snapshotter = repo.models[f"{way.name}-windows"]
        snapshotter.config.sequence_batching.max_sequence_idle_microseconds = IDLE_US
        snapshotter.config.write()
