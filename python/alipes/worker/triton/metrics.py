"""Metrics of a model among the server's own.

The server keeps them; what is said to it goes through the link as calls with JSON, each answered by a JSON object:

===================== ======================================================== ======================
call                  question                                                 answer
===================== ======================================================== ======================
``metric.family``     ``name``, ``description``, ``kind``: ``counter``,        ``family``: a number
                      ``gauge`` or ``histogram``
``metric.create``     ``family``; ``labels``: an object of texts; ``buckets``: ``metric``: a number
                      a list of numbers or null
``metric.increment``  ``metric``, ``value``                                    nothing
``metric.set``        ``metric``, ``value``                                    nothing
``metric.observe``    ``metric``, ``value``                                    nothing
``metric.value``      ``metric``                                               ``value``
``metric.delete``     ``metric``                                               nothing
``metric.forget``     ``family``                                               nothing
===================== ======================================================== ======================

Numbers are the server's and belong to this worker; when it ends, all of them are deleted. Families of the same name are
one family on the server, and metrics of the same labels one metric; each has as many owners as were created.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping, Sequence
from enum import Enum

from alipes._core import TritonModelException
from alipes.worker.current import ask

__all__ = ["Metric", "MetricFamily", "MetricKind"]


class MetricKind(Enum):
    """What a metric measures."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric:
    """One time series. Made by `MetricFamily.Metric`; lives no longer than its family."""

    def __init__(self, family: MetricFamily, labels: Mapping[str, str] | None, buckets: Sequence[float] | None) -> None:
        """Creates the series on the server."""
        question = {
            "family": family._number,
            "labels": {str(name): str(value) for name, value in (labels or {}).items()},
            "buckets": None if buckets is None else [float(edge) for edge in buckets],
        }
        self._number: int | None = ask("metric.create", question, "Error when creating Metric")["metric"]
        family._metrics.add(self)

    def increment(self, value: float) -> None:
        """Adds to a counter or a gauge."""
        self._do("increment", value)

    def set(self, value: float) -> None:
        """Sets a gauge."""
        self._do("set", value)

    def observe(self, value: float) -> None:
        """Adds an observation to a histogram."""
        self._do("observe", value)

    def value(self) -> float:
        """What the series stands at."""
        return float(ask("metric.value", {"metric": self._living()}, "Failed to get metric value")["value"])

    def __del__(self) -> None:
        """The server forgets the series with its last owner."""
        self._delete()

    def _do(self, operation: str, value: float) -> None:
        question = {"metric": self._living(), "value": float(value)}
        ask(f"metric.{operation}", question, f"Failed to {operation} metric value")

    def _living(self) -> int:
        if self._number is None:
            raise TritonModelException(
                "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' "
                "object should be deleted AFTER its corresponding 'Metric' objects have been deleted."
            )
        return self._number

    def _delete(self) -> None:
        number = getattr(self, "_number", None)
        if number is not None:
            self._number = None
            _release("delete", {"metric": number})


class MetricFamily:
    """Series of one name that differ in their labels."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        """Creates the family on the server."""
        question = {"name": str(name), "description": str(description), "kind": MetricKind(kind).value}
        self._metrics: weakref.WeakSet[Metric] = weakref.WeakSet()
        self._number: int = ask("metric.family", question, "Error when creating MetricFamily")["family"]

    def Metric(  # Triton's name
        self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> Metric:
        """Creates a series.

        Args:
            labels: Names and values that distinguish it from the others of the family.
            buckets: Upper edges of a histogram's buckets, ascending.
        """
        return Metric(self, labels, buckets)

    def __del__(self) -> None:
        """The series of a family go with it, as in Triton."""
        for metric in list(getattr(self, "_metrics", ())):
            metric._delete()
        if hasattr(self, "_number"):
            _release("forget", {"family": self._number})


def _release(operation: str, question: dict[str, object]) -> None:
    # While the interpreter ends, modules may be gone; the server forgets a worker's metrics by itself then.
    with contextlib.suppress(Exception):
        ask(f"metric.{operation}", question, "Error when deleting it")
