"""The plan for time series: each file is one, cut into stretches of updates that overlap by what the state needs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from alipes.batch.folder import RunFolder, Start
from alipes.batch.formats.numpy_files import Npy
from alipes.batch.formats.series import Series, open_series
from alipes.batch.plan import FORMAT, Overlap, Plan, Unit
from alipes.batch.planning import Extent, Files, Work, new_plan
from alipes.batch.sender import StreamSender
from alipes.errors import ConfigError

__all__ = ["make_stream_plan", "stream_overlap", "stretches", "written_series"]

_PIECES_EACH: Final = 8
_MOST_AGAIN: Final = 4
"""A stretch is so many times as long as its overlap, where there is enough: a fifth of the work is done twice."""


def stream_overlap(address: str, work: Work, start: Start, strides: int | None, overlap: int | None) -> Overlap:
    """How a time series is cut for a model.

    Args:
        address: A server that has the model.
        work: Which model.
        start: How the server is asked.
        strides: Strides of an update where the server leaves that open.
        overlap: Updates that the state depends on, where it cannot be found out.

    Raises:
        ConfigError: If the model takes no stream, or nobody knows how far back its state goes.
        AlipesError: If the server cannot be reached, or has no such model.
    """
    if not address.startswith(("grpc://", "grpcs://")):
        raise ConfigError(f"streams need gRPC, and {address} is an address of HTTP: give the port of gRPC", key="url")
    plan = Plan(FORMAT, "", work.model, work.version, work.form, "", [], [], [0], 1, 1, Overlap(1, 0, 1, ()))
    sender = StreamSender(address, plan, start, strides or 1)
    try:
        states = sender.client.states
        if len(states) != 1:
            raise ConfigError(
                f"model '{work.model}' takes {len(states)} streams, and a run cuts one: leave --stream out",
                key="stream",
            )
        tensor, known = states[0].tensor, sender.client.memory
        updates = known if overlap is None else overlap
        if updates is None:
            raise ConfigError(
                f"how many updates the state of model '{work.model}' depends on is unknown: say it with --overlap",
                key="overlap",
            )
        shape = tuple(size for size in tensor.shape[:-1] if size != 1)
        return Overlap(tensor.shape[-1], updates, states[0].windows, shape)
    finally:
        sender.cancel()


def make_stream_plan(work: Work, files: Files, overlap: Overlap, extent: Extent) -> Plan:
    """The plan for files, each with a time series of its own.

    Raises:
        ConfigError: If no file fits the model.
    """
    folder, listed = files
    counts: list[int] = []
    sample_bytes = 1
    reasons: list[str] = []
    for name, _, _ in listed:
        counts.append(0)
        try:
            with open_series(Path(folder, name)) as series:
                _check_shape(series, overlap)
                counts[-1] = -(-series.samples // overlap.samples)
                sample_bytes = max(sample_bytes, series.channels * series.dtype.itemsize)
        except (ValueError, OSError, KeyError, EOFError) as error:
            reasons.append(f"{name}: {error}")
    if len(reasons) == len(listed):
        raise ConfigError(f"the inputs do not fit model '{work.model}': {reasons[0]}", key="inputs")
    most = max(1, 2 * extent.unit_bytes // (overlap.samples * sample_bytes))
    total = sum(counts)
    units = [
        Unit(number, start, stop)
        for number, count in enumerate(counts)
        # A file that cannot be read is a piece: a client sets it aside, with the reason.
        for start, stop in stretches(count, overlap.updates, total, extent.servers * extent.clients, most)
    ]
    return new_plan(work, files, units, list(range(len(units) + 1)), extent, overlap)


def stretches(count: int, overlap: int, total: int, shards: int, most: int) -> list[tuple[int, int]]:
    """Cuts the updates of one series.

    Args:
        count: How many there are.
        overlap: Updates that are sent again before each stretch.
        total: Updates of all series.
        shards: Clients.
        most: Updates of a stretch at most.

    Returns:
        Where each stretch begins and ends; an empty one for a series without updates.
    """
    wanted = max(-(-total // (shards * _PIECES_EACH)), min(_MOST_AGAIN * overlap, -(-total // shards)), 1)
    pieces = max(1, -(-count // min(wanted, most)))
    edges = [count * number // pieces for number in range(pieces + 1)]
    return list(pairwise(edges))


def written_series(inputs: Any, folder: RunFolder) -> Files:
    """A time series as a file of the run.

    Raises:
        ConfigError: If it is no array.
    """
    if not isinstance(inputs, np.ndarray) or not inputs.ndim:
        raise ConfigError("a stream is an array whose last axis is the time, or files with one each", key="inputs")
    folder.inputs.mkdir(exist_ok=True)
    path = folder.inputs / "series.npy"
    folder.write_aside(path, lambda aside: Npy().write(aside, {"": inputs}))
    state = path.stat()
    return "", [(str(path.absolute()), state.st_size, state.st_mtime_ns)]


def _check_shape(series: Series, overlap: Overlap) -> None:
    shape = tuple(size for size in series.shape[:-1] if size != 1)
    if shape != overlap.channels:
        raise ValueError(
            f"it has the shape {list(series.shape)}, and the model takes {list(overlap.channels) or 'one value'} for "
            "each sample of the last axis"
        )
    if not series.samples:
        raise ValueError("it has no samples")
