"""What a run found: rates and latencies of each variant, and how its requests were batched."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

BASELINES: Final = ("fastapi-onnx", "model-py")
"""Whose rate the others are compared with: the first of them that takes part. Both run without PyTorch."""


@dataclass(frozen=True)
class Measured:
    """A variant under load.

    Attributes:
        variant: Its name.
        senders: How many connections sent at a time.
        rate: Requests a second.
        median_ms: Median latency, in milliseconds.
        p99_ms: 99th percentile of the latency.
        cpu_ms: CPU of the server and its workers for each request, in milliseconds.
        ratio: Rate over the baseline's in the same round; None where it does not run.
    """

    variant: str
    senders: int
    rate: float
    median_ms: float
    p99_ms: float
    cpu_ms: float
    ratio: float | None = None


@dataclass(frozen=True)
class Batches:
    """Executions of a model with batches of one size.

    Attributes:
        variant: The variant's name.
        model: The model.
        size: Requests in each execution.
        executions: How many there were.
        compute_ms: How long one took, in milliseconds.
    """

    variant: str
    model: str
    size: int
    executions: int
    compute_ms: float

    @classmethod
    def of(cls, variant: str, model: str, counted: dict[str, Any]) -> Self:
        """Reads an entry of `batch_stats`."""
        executions = counted["compute_infer"]["count"]
        compute_ms = counted["compute_infer"]["ns"] / 1e6 / executions if executions else 0.0
        return cls(variant, model, counted["batch_size"], executions, compute_ms)


@dataclass(frozen=True)
class Results:
    """All of a run.

    Attributes:
        measured: A row for each number of senders and each variant; medians of the rounds.
        batches: How requests were batched.
        answers: Label and probability that each variant gave.
        baseline: The variant that ratios refer to; none where none of `BASELINES` takes part.
    """

    measured: list[Measured]
    batches: list[Batches]
    answers: dict[str, tuple[str, float]]
    baseline: str | None

    @classmethod
    def of(
        cls, rounds: Sequence[Sequence[Measured]], batches: list[Batches], answers: dict[str, tuple[str, float]]
    ) -> Self:
        """Takes the medians of rounds that have the same rows in the same order."""
        baseline = next((name for name in BASELINES if name in answers), None)
        rows = [_median(same, rounds, baseline) for same in zip(*rounds, strict=True)]
        return cls(rows, batches, answers, baseline)

    @property
    def senders(self) -> list[int]:
        """The numbers of senders, in order."""
        return list(dict.fromkeys(row.senders for row in self.measured))

    @property
    def variants(self) -> list[str]:
        """The names of the variants, in order."""
        return list(self.answers)

    def row(self, variant: str, senders: int) -> Measured:
        """What was measured of a variant under so many senders."""
        return next(row for row in self.measured if (row.variant, row.senders) == (variant, senders))


def _median(rows: Sequence[Measured], rounds: Sequence[Sequence[Measured]], baseline: str | None) -> Measured:
    first = rows[0]
    baselines = [
        next((row.rate for row in round_ if (row.variant, row.senders) == (baseline, first.senders)), None)
        for round_ in rounds
    ]
    ratios = [row.rate / base for row, base in zip(rows, baselines, strict=True) if base is not None]
    values = {
        name: statistics.median(getattr(row, name) for row in rows)
        for name in ("rate", "median_ms", "p99_ms", "cpu_ms")
    }
    return Measured(first.variant, first.senders, **values, ratio=statistics.median(ratios) if ratios else None)
