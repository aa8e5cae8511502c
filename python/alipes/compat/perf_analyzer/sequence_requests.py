"""Requests of sequences: those of one sequence are sent one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from alipes.compat.perf_analyzer.dataset import Dataset, Step
from alipes.compat.perf_analyzer.failures import Exit, Failed
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.requests import Prepared, empty_requests, tensor
from alipes.compat.perf_analyzer.settings import Sequences, Settings

__all__ = ["prepare_sequences"]

_VARIETY: Final = 64
"""Sequences of random length that are prepared: they are sent in turn, each time under the next id."""
_MOST: Final = 1_000_000
"""Requests that are prepared."""

Chain = Sequence[tuple[Step, Step]]
"""Steps of a sequence, each with what is expected of its answer."""


def prepare_sequences(model: Model, settings: Settings, dataset: Dataset) -> Prepared:
    """The requests of sequences; each sequence takes the next correlation id when it begins.

    A sequence is a stream of the data, from its beginning to its end. Where a length is asked for, it takes the steps
    of its stream in turn. Without files, sequences have random lengths.

    Raises:
        Failed: If there are fewer correlation ids than sequences under way, or too many requests.
    """
    if settings.load.mode == "periodic":
        raise Failed("Error: --periodic-concurrency-range is not served for sequences", Exit.OPTION)
    _check_ids(settings)
    requests, ends, expected = empty_requests(settings.target), list[bool](), list[Step]()
    streaming = settings.load.streaming
    decoupled = streaming and model.is_decoupled
    for chain in _chains(settings, dataset):
        for place, (step, known) in enumerate(chain):
            rows = {name: array[np.newaxis] if model.max_batch else array for name, array in step.items()}
            parameters: dict[str, Any] = {
                **settings.data.parameters,
                "sequence_start": place == 0,
                "sequence_end": place == len(chain) - 1,
            }
            tensors = [tensor(model, name, array) for name, array in rows.items()]
            requests.infer(model.name, model.version, tensors, None, "", parameters, streaming, decoupled, True)
            ends.append(place == len(chain) - 1)
            expected.append(known)
            if len(ends) > _MOST:
                raise Failed(f"Error: sequences of more than {_MOST} requests in all are not served", Exit.OPTION)
        requests.chain()
    requests.number(settings.sequences.first_id, settings.sequences.last_id)
    return Prepared(requests, expected if dataset.expected else [], dataset.message, ends)


def _chains(settings: Settings, dataset: Dataset) -> Iterator[Chain]:
    streams = [stream for stream in _streams(dataset) if stream]
    sequences = settings.sequences
    if isinstance(settings.data.source, str):  # random values follow each other in any order
        steps = itertools.cycle(streams[0])
        yield from (list(itertools.islice(steps, length)) for length in _lengths(sequences, _VARIETY))
    elif sequences.has_length:
        copies = -(-_VARIETY // len(streams))
        lengths = _lengths(sequences, copies * len(streams))
        for length, stream in zip(lengths, itertools.cycle(streams), strict=False):
            yield list(itertools.islice(itertools.cycle(stream), length))
    else:
        yield from streams


def _streams(dataset: Dataset) -> Iterator[Chain]:
    for number, stream in enumerate(dataset.streams):
        expected = dataset.expected[number] if dataset.expected else [{} for _ in stream]
        yield list(zip(stream, expected, strict=True))


def _lengths(sequences: Sequences, count: int) -> list[int]:
    random = np.random.default_rng(0)
    most = sequences.length * sequences.variation_percent / 100
    return [max(round(sequences.length + float(random.uniform(-most, most))), 1) for _ in range(count)]


def _check_ids(settings: Settings) -> None:
    load, sequences = settings.load, settings.sequences
    under_way = int(max(load.start, load.end)) if load.mode == "concurrency" else sequences.count
    if sequences.last_id is not None and sequences.last_id - sequences.first_id < under_way:
        raise Failed(
            "sequence id range specified is smaller than the maximum possible concurrency, sequence id collision may "
            "occur.",
            Exit.OPTION,
        )
