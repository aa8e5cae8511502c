"""`ModelCounts`: what a server has counted of a model, read from its statistics; the one reader of that document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

__all__ = ["STAGES", "ModelCounts", "StageCount"]

STAGES: Final = ("queue", "compute_input", "compute_infer", "compute_output")
"""The stages of a request, in their order."""

_OTHERS: Final = ("success", "fail", "cache_hit", "cache_miss")

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StageCount:
    """How often something took place, and how long it took in all.

    Attributes:
        count: How often.
        ns: Nanoseconds.
    """

    count: int = 0
    ns: int = 0

    @classmethod
    def read(cls, document: Document) -> Self:
        """From the server's words; what it leaves out did not take place."""
        return cls(int(document.get("count", 0)), int(document.get("ns", 0)))

    def __add__(self, other: StageCount) -> StageCount:
        """Both."""
        return StageCount(self.count + other.count, self.ns + other.ns)


@dataclass(frozen=True, slots=True)
class ModelCounts:
    """The counts of one version of a model, or of several together.

    Attributes:
        rows: Rows that were answered.
        executions: Executions that they took.
        parts: By the names of the statistics: the stages, `success`, `fail`, `cache_hit` and `cache_miss`.
        batches: By the size of a batch, its stages.
    """

    rows: int = 0
    executions: int = 0
    parts: Mapping[str, StageCount] = field(default_factory=dict)
    batches: Mapping[int, Mapping[str, StageCount]] = field(default_factory=dict)

    @classmethod
    def read(cls, document: Document) -> Self:
        """The counts of a version, from what the server says of it."""
        stats = document.get("inference_stats", {})
        return cls(
            int(document.get("inference_count", 0)),
            int(document.get("execution_count", 0)),
            {name: StageCount.read(stats.get(name, {})) for name in (*STAGES, *_OTHERS)},
            {
                int(row["batch_size"]): {name: StageCount.read(row.get(name, {})) for name in STAGES[1:]}
                for row in document.get("batch_stats", ())
            },
        )

    @classmethod
    def of_all(cls, documents: Iterable[Document]) -> Self:
        """The counts of all versions together."""
        rows = executions = 0
        parts: dict[str, StageCount] = {}
        batches: dict[int, dict[str, StageCount]] = {}
        for one in map(cls.read, documents):
            rows, executions = rows + one.rows, executions + one.executions
            _add(parts, one.parts)
            for size, stages in one.batches.items():
                _add(batches.setdefault(size, {}), stages)
        return cls(rows, executions, parts, batches)

    def part(self, name: str) -> StageCount:
        """One part by its name; nothing where no version has it."""
        return self.parts.get(name, StageCount())


def _add(total: dict[str, StageCount], more: Mapping[str, StageCount]) -> None:
    for name, count in more.items():
        total[name] = total.get(name, StageCount()) + count
