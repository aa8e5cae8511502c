"""Requests of sequences: those of one sequence are sent one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from alipes.compat.perf_analyzer.dataset import Dataset, Step
from alipes.compat.perf_analyzer.failures import Exit, Failed
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.requests import Prepared, empty_requests, tensor
from alipes.compat.perf_analyzer.settings import Sequences, Settings

__all__ = ["prepare_sequences"]

_VARIETY: Final = 4
"""Sequences that are prepared for each that is under way."""
_MOST: Final = 1_000_000
"""Requests that are prepared."""


def prepare_sequences(model: Model, settings: Settings, dataset: Dataset) -> Prepared:
    """The requests, each sequence with a correlation id of its own.

    A stream of the data is a sequence; without streams, sequences have random lengths and take steps in turn.

    Raises:
        Failed: If there are fewer correlation ids than sequences under way, or too many requests.
    """
    if settings.load.mode == "periodic":
        raise Failed("Error: --periodic-concurrency-range is not served for sequences", Exit.OPTION)
    requests, ends = empty_requests(settings.target), list[bool]()
    expected = [step for stream in dataset.expected for step in stream]
    decoupled = settings.load.streaming and model.is_decoupled
    for identity, steps in zip(_ids(settings), _chains(settings, dataset), strict=False):
        for place, step in enumerate(steps):
            rows = {name: array[np.newaxis] if model.max_batch else array for name, array in step.items()}
            parameters: dict[str, Any] = {
                **settings.data.parameters,
                "sequence_id": identity,
                "sequence_start": place == 0,
                "sequence_end": place == len(steps) - 1,
            }
            tensors = [tensor(model, name, array) for name, array in rows.items()]
            requests.infer(model.name, model.version, tensors, None, "", parameters, settings.load.streaming, decoupled)
            ends.append(place == len(steps) - 1)
            if len(ends) > _MOST:
                raise Failed(f"Error: sequences of more than {_MOST} requests in all are not served", Exit.OPTION)
        requests.chain()
    return Prepared(requests, expected if len(expected) == len(ends) else [], dataset.message, ends)


def _chains(settings: Settings, dataset: Dataset) -> list[list[Step]]:
    under_way = _under_way(settings)
    if len(dataset.streams) > 1:
        copies = -(-under_way // len(dataset.streams))
        return [list(stream) for _ in range(copies) for stream in dataset.streams]
    steps = itertools.cycle(dataset.streams[0])
    return [list(itertools.islice(steps, length)) for length in _lengths(settings.sequences, _VARIETY * under_way)]


def _under_way(settings: Settings) -> int:
    load = settings.load
    return int(max(load.start, load.end)) if load.mode == "concurrency" else settings.sequences.count


def _lengths(sequences: Sequences, count: int) -> list[int]:
    random = np.random.default_rng(0)
    most = sequences.length * sequences.variation_percent / 100
    return [max(round(sequences.length + float(random.uniform(-most, most))), 1) for _ in range(count)]


def _ids(settings: Settings) -> Iterator[int]:
    sequences = settings.sequences
    if sequences.last_id is None:
        return itertools.count(sequences.first_id)
    if sequences.last_id - sequences.first_id < _under_way(settings):
        raise Failed(
            "sequence id range specified is smaller than the maximum possible concurrency, sequence id collision may "
            "occur.",
            Exit.OPTION,
        )
    return iter(range(sequences.first_id, sequences.last_id))
