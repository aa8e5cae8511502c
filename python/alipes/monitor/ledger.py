"""What changed between two looks at a server's counters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from alipes.monitor.columns import COUNT, DURATIONS, Column
from alipes.monitor.prometheus import Sample

__all__ = ["Key", "Ledger", "Row"]

Key = tuple[str, int]
"""A model and its version."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one server did with one model since the row before.

    Attributes:
        timestamp: Seconds since 1970, when the counters were read.
        ip: The server, as the caller named it.
        model: The model.
        version: Its version.
        count: Executions.
        durations_us: Microseconds spent in each part, over all requests, by column.
        extras: Values of further columns, by column.
    """

    timestamp: float
    ip: str
    model: str
    version: int
    count: int
    durations_us: Mapping[str, int]
    extras: Mapping[str, float] = field(default_factory=dict)


class Ledger:
    """The last known counters of one server.

    A model has a row only where its executions changed; what its other counters say until then is in its next row. A
    counter that is smaller than before belongs to a server that was started again: all that it says is new.
    """

    def __init__(self, ip: str, keys: Sequence[Key] | None, columns: Sequence[Column] = ()) -> None:
        """Knows nothing yet.

        Args:
            ip: The server, as rows name it.
            keys: Models to look at, in the order of their rows; `None` for all models of the server.
            columns: Further columns.
        """
        self._ip = ip
        self._keys = keys
        self._columns = columns
        self._sums = {COUNT, *DURATIONS.values(), *(column.metric for column in columns if column.kind == "sum")}
        self._before: dict[Key, dict[str, float]] | None = None

    def look(self, timestamp: float, page: Iterable[Sample]) -> list[Row]:
        """The rows that a page gives; none for the first one, which is what later ones are compared with."""
        counters, gauges, everywhere = self._sorted(page)
        first = self._before is None
        known = self._before if self._before is not None else {}
        rows = []
        for key in self._keys if self._keys is not None else sorted(counters):
            now, before = counters.get(key), known.get(key, {})
            if now is None:
                continue
            if any(now[name] < before.get(name, 0) for name in now):
                before = {}
            if not first and now[COUNT] != before.get(COUNT, 0):
                rows.append(self._row(timestamp, key, now, before, gauges[key] | everywhere))
                known[key] = now
            elif first or not before:
                # Until it executes something, what it is compared with stays where it began.
                known[key] = now if first else dict.fromkeys(now, 0.0)
        self._before = known
        return rows

    def _row(
        self, timestamp: float, key: Key, now: dict[str, float], before: dict[str, float], gauges: dict[str, float]
    ) -> Row:
        def since(metric: str) -> int:
            return round(now.get(metric, 0) - before.get(metric, 0))

        extras = {}
        for column in self._columns:
            if column.name == "version":
                extras[column.name] = float(key[1])
            elif column.kind == "sum":
                extras[column.name] = float(since(column.metric))
            else:
                extras[column.name] = gauges.get(column.metric, 0.0)
        durations = {name: since(metric) for name, metric in DURATIONS.items()}
        return Row(timestamp, self._ip, *key, since(COUNT), durations, extras)

    def _sorted(
        self, page: Iterable[Sample]
    ) -> tuple[dict[Key, dict[str, float]], dict[Key, dict[str, float]], dict[str, float]]:
        """The counters and the gauges of each model, and those of the machine: the mean over its devices."""
        wanted = {column.metric for column in self._columns if column.kind == "now"}
        counters: dict[Key, dict[str, float]] = {}
        gauges: dict[Key, dict[str, float]] = defaultdict(dict)
        machine: dict[str, list[float]] = defaultdict(list)
        for sample in page:
            key = _key(sample)
            if sample.name in self._sums and key is not None:
                mine = counters.setdefault(key, dict.fromkeys(self._sums, 0.0))
                mine[sample.name] += sample.value  # failures come apart by their reasons
            elif sample.name in wanted and key is not None:
                gauges[key][sample.name] = sample.value
            elif sample.name in wanted:
                machine[sample.name].append(sample.value)
        return counters, gauges, {name: sum(values) / len(values) for name, values in machine.items()}


def _key(sample: Sample) -> Key | None:
    version = sample.labels.get("version", "")
    return (sample.labels["model"], int(version)) if "model" in sample.labels and version.isdecimal() else None
