"""One stream as several sequences at a time: each begins early enough for its state to be what it would have been."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from alipes.errors import InvalidArgument

__all__ = ["Span", "cut", "spans", "stream"]

Send: TypeAlias = "Callable[[Any, int, bool, bool], Future[Any]]"
"""Sends an update of the sequence of a number, with whether it begins and ends there."""


class Span(NamedTuple):
    """Updates of one sequence: from `first` on, and answers count from `start` to before `stop`."""

    first: int
    start: int
    stop: int


def spans(count: int, sequences: int, overlap: int) -> list[Span]:
    """Divides updates among sequences.

    Args:
        count: Number of the updates.
        sequences: Number of sequences at most; none is without an update of its own.
        overlap: Updates before its own that a sequence is sent, where there are as many.
    """
    edges = [count * number // sequences for number in range(sequences + 1)]
    return [Span(max(0, start - overlap), start, stop) for start, stop in pairwise(edges) if stop > start]


def cut(samples: np.ndarray[Any, Any], size: int) -> list[np.ndarray[Any, Any]]:
    """The updates of a stream: pieces of its last axis, of which the last may be short.

    Raises:
        InvalidArgument: If there is nothing to cut; a `ValueError`.
    """
    if not samples.ndim or not samples.shape[-1]:
        raise InvalidArgument(f"a stream needs samples, got an array of shape {list(samples.shape)}")
    return [samples[..., start : start + size] for start in range(0, samples.shape[-1], size)]


def stream(updates: Sequence[Any], divided: Sequence[Span], send: Send, ahead: int) -> Iterator[Any]:
    """The answers to the updates of a stream, in their order.

    Args:
        updates: All of them.
        divided: What each sequence is sent.
        send: Sends one.
        ahead: Updates of each sequence that are sent before answers are waited for.
    """
    waiting: list[deque[Future[Any]]] = [deque() for _ in divided]
    sent = [span.first for span in divided]
    for number, span in enumerate(divided):
        for _ in range(span.start, span.stop):
            _send_on(updates, divided, sent, waiting, send, number, ahead)
            yield waiting[number].popleft().result()


def _send_on(  # noqa: PLR0913, PLR0917 - the state of one stream
    updates: Sequence[Any],
    divided: Sequence[Span],
    sent: list[int],
    waiting: list[deque[Future[Any]]],
    send: Send,
    current: int,
    ahead: int,
) -> None:
    """Keeps sequences busy: the current one so far ahead of its answers, the others at the same pace."""
    while sent[current] < divided[current].stop and len(waiting[current]) < ahead:
        for number in range(current, len(divided)):
            at, span = sent[number], divided[number]
            if at < span.stop:
                future = send(updates[at], number, at == span.first, at == span.stop - 1)
                sent[number] += 1
                if at >= span.start:
                    waiting[number].append(future)
