"""What the server batched: its own statistics, between two looks, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alipes.client import Client


@dataclass(frozen=True, slots=True)
class BatchStatistic:
    """How often the server ran a batch of one size, and how long the model took for all of them together."""

    rows: int
    count: int
    compute_ns: int


@dataclass(frozen=True, slots=True)
class BatchGroup:
    """Batches of similar size.

    Attributes:
        smallest: Smallest batch size of the group, which need not have occurred.
        largest: Largest batch size of the group.
        count: How many batches ran.
        rows: How many scans they held together.
        compute_ns: How long the model took for all of them together.
    """

    smallest: int
    largest: int
    count: int
    rows: int
    compute_ns: int

    @property
    def label(self) -> str:
        """The sizes as text."""
        return str(self.largest) if self.smallest == self.largest else f"{self.smallest}-{self.largest}"


def read_batches(client: Client, model: str) -> list[BatchStatistic]:
    """What the server batched since it started, by batch size."""
    return [
        BatchStatistic(row["batch_size"], row["compute_infer"]["count"], row["compute_infer"]["ns"])
        for row in client.statistics(model)[0]["batch_stats"]
    ]


def since(before: Sequence[BatchStatistic], after: Sequence[BatchStatistic]) -> list[BatchStatistic]:
    """The batches between two looks at the statistics; sizes without any are left out."""
    earlier = {row.rows: row for row in before}
    made = []
    for row in after:
        old = earlier.get(row.rows, BatchStatistic(row.rows, 0, 0))
        if row.count > old.count:
            made.append(BatchStatistic(row.rows, row.count - old.count, row.compute_ns - old.compute_ns))
    return made


def grouped(batches: Sequence[BatchStatistic]) -> list[BatchGroup]:
    """The batch sizes 1, 2, 3-4, 5-8 and so on, from small to large; groups without a batch are left out."""
    groups: dict[int, BatchGroup] = {}
    for row in batches:
        largest = 1 << (row.rows - 1).bit_length()
        old = groups.get(largest, BatchGroup(largest // 2 + 1, largest, 0, 0, 0))
        groups[largest] = BatchGroup(
            old.smallest,
            largest,
            old.count + row.count,
            old.rows + row.rows * row.count,
            old.compute_ns + row.compute_ns,
        )
    return [groups[largest] for largest in sorted(groups)]
