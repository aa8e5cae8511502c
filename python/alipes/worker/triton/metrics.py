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
one family on the server, and metrics of the same labels one metric; each has as many owners as were created. The copies
that a forked process has are no owners.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from enum import Enum

from alipes._core import TritonModelException
from alipes.worker.current import ask
from alipes.worker.triton.arguments import wrong_arguments, wrong_call

__all__ = ["Metric", "MetricFamily", "MetricKind"]


class MetricKind(Enum):
    """What a metric measures."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric:
    """One time series. Made by `MetricFamily.Metric`; lives no longer than its family."""

    def __init__(self, family: MetricFamily, labels: dict[str, str] | None, buckets: list[float] | None) -> None:
        """Creates the series on the server."""
        question = {
            "family": family._number,
            "labels": {str(name): str(value) for name, value in (labels or {}).items()},
            "buckets": None if buckets is None else [float(edge) for edge in buckets],
        }
        self._process = os.getpid()
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
        if not hasattr(type(value), "__float__") and not hasattr(type(value), "__index__"):
            supported = "(self: c_python_backend_utils.Metric, arg0: float) -> None"
            raise wrong_call(operation, supported, self, value)
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
            _release("delete", {"metric": number}, self._process)


class MetricFamily:
    """Series of one name that differ in their labels."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        """Creates the family on the server.

        Raises:
            TypeError: If name or description is no text, or the kind none of `MetricKind`.
            TritonModelException: If the server refuses.
        """
        if not (isinstance(name, str) and isinstance(description, str) and isinstance(kind, MetricKind)):
            supported = (
                "c_python_backend_utils.MetricFamily(name: str, description: str, "
                "kind: c_python_backend_utils.MetricKind)"
            )
            raise wrong_arguments(supported, name, description, kind)
        self._kind = kind
        question = {"name": name, "description": description, "kind": kind.value}
        self._metrics: weakref.WeakSet[Metric] = weakref.WeakSet()
        self._process = os.getpid()
        self._number: int = ask("metric.family", question, "Error when creating MetricFamily")["family"]

    def Metric(  # Triton's name
        self, labels: dict[str, str] | None = None, buckets: list[float] | None = None
    ) -> Metric:
        """Creates a series.

        Args:
            labels: Names and values that distinguish it from the others of the family.
            buckets: Upper edges of a histogram's buckets, ascending. A histogram needs them, others have none.

        Raises:
            TritonModelException: If labels or buckets do not fit the family, or the server refuses.
        """
        failed = "Failed to create metric."
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException(f"{failed} Labels must be a dictionary.")
        if buckets is None and self._kind is MetricKind.HISTOGRAM:
            raise TritonModelException(f"{failed} Missing required buckets.")
        if buckets is not None and not isinstance(buckets, list):
            raise TritonModelException(f"{failed} Buckets must be a list.")
        if buckets is not None and self._kind is not MetricKind.HISTOGRAM:
            raise TritonModelException(f"{failed} Unexpected buckets found.")
        return Metric(self, labels, buckets)

    def __del__(self) -> None:
        """The series of a family go with it, as in Triton."""
        for metric in list(getattr(self, "_metrics", ())):
            metric._delete()
        if hasattr(self, "_number"):
            _release("forget", {"family": self._number}, self._process)


def _release(operation: str, question: dict[str, object], process: int) -> None:
    """Gives up what a process has made, unless this is another one, which was forked and has a copy."""
    # While the interpreter ends, modules may be gone; the server forgets a worker's metrics by itself then.
    with contextlib.suppress(Exception):
        if process == os.getpid():
            ask(f"metric.{operation}", question, "Error when deleting it")
