"""Metrics of a model: what is asked of the server, and how long they live."""

from __future__ import annotations

import re
from typing import Any

import pytest
from alipes._core import TritonModelException
from alipes.worker.triton.metrics import MetricFamily


def test_families_and_series_are_created_on_the_server(link: Any) -> None:
    link.answers = [{"family": 4}, {"metric": 7}]
    family = MetricFamily(name="requests", description="Requests seen", kind=MetricFamily.COUNTER)
    metric = family.Metric(labels={"model": "m", "version": 1})
    assert link.calls == [
        ("metric.family", {"name": "requests", "description": "Requests seen", "kind": "counter"}),
        ("metric.create", {"family": 4, "labels": {"model": "m", "version": "1"}, "buckets": None}),
    ]
    del metric


def test_a_histogram_has_buckets(link: Any) -> None:
    link.answers = [{"family": 4}, {"metric": 7}]
    family = MetricFamily("seconds", "Time", MetricFamily.HISTOGRAM)
    metric = family.Metric(buckets=[1, 2.5])
    assert link.calls[1] == ("metric.create", {"family": 4, "labels": {}, "buckets": [1.0, 2.5]})
    del metric


@pytest.mark.parametrize(
    ("kind", "arguments", "text"),
    [
        (MetricFamily.HISTOGRAM, {}, "Missing required buckets."),
        (MetricFamily.HISTOGRAM, {"buckets": (1.0, 2.0)}, "Buckets must be a list."),
        (MetricFamily.COUNTER, {"buckets": [1.0]}, "Unexpected buckets found."),
        (MetricFamily.GAUGE, {"labels": [("a", "b")]}, "Labels must be a dictionary."),
    ],
)
def test_a_series_that_does_not_fit_its_family_is_refused(link: Any, kind: Any, arguments: Any, text: str) -> None:
    link.answers = [{"family": 4}]
    family = MetricFamily("seconds", "Time", kind)
    # Not bound to a name: the family would live on with the exception, and be forgotten in the midst of another test.
    with pytest.raises(TritonModelException, match=f"^{re.escape(f'Failed to create metric. {text}')}$"):
        family.Metric(**arguments)
    assert "metric.create" not in dict(link.calls)


@pytest.mark.parametrize(
    "arguments", [(None, "", MetricFamily.GAUGE), ("n", None, MetricFamily.GAUGE), ("n", "", None)]
)
def test_a_family_has_texts_and_a_kind(link: Any, arguments: Any) -> None:
    with pytest.raises(TypeError, match=r"^__init__\(\): incompatible constructor arguments\."):
        MetricFamily(*arguments)
    assert link.calls == []


@pytest.fixture
def series(link: Any) -> Any:
    link.answers = [{"family": 4}, {"metric": 7}]
    family = MetricFamily("level", "Level", MetricFamily.GAUGE)
    metric = family.Metric()
    link.calls.clear()
    return family, metric


@pytest.mark.parametrize("operation", ["increment", "set", "observe"])
def test_operations_reach_the_server(link: Any, series: Any, operation: str) -> None:
    getattr(series[1], operation)(2)
    assert link.calls == [(f"metric.{operation}", {"metric": 7, "value": 2.0})]


@pytest.mark.parametrize("value", [None, "2", [2.0]])
def test_an_operation_takes_a_number(link: Any, series: Any, value: Any) -> None:
    with pytest.raises(TypeError, match=r"^set\(\): incompatible function arguments\."):
        series[1].set(value)
    assert link.calls == []


def test_a_value_comes_from_the_server(link: Any, series: Any) -> None:
    link.answers = [{"value": 2.5}]
    assert series[1].value() == 2.5
    assert link.calls == [("metric.value", {"metric": 7})]


def test_what_the_server_refuses_is_raised(link: Any, series: Any) -> None:
    link.answers = ["negative increments are not supported"]
    with pytest.raises(TritonModelException, match=r"^Failed to increment metric value: negative increments"):
        series[1].increment(-1)


def test_a_refused_family_is_raised(link: Any) -> None:
    link.answers = ["the family has another kind"]
    with pytest.raises(TritonModelException, match=r"^Error when creating MetricFamily: the family has another kind$"):
        MetricFamily("requests", "", MetricFamily.GAUGE)
    assert [name for name, _ in link.calls] == ["metric.family"]


def test_the_last_reference_deletes(link: Any, series: Any) -> None:
    family, metric = series
    del series, metric
    # The fixture's own tuple is still there; a second pair is not.
    link.answers = [{"family": 5}, {"metric": 8}]
    second = MetricFamily("other", "", MetricFamily.COUNTER)
    metric = second.Metric()
    del metric
    assert link.calls[-1] == ("metric.delete", {"metric": 8})
    del second
    assert link.calls[-1] == ("metric.forget", {"family": 5})
    del family


def test_series_do_not_outlive_their_family(link: Any) -> None:
    link.answers = [{"family": 4}, {"metric": 7}]
    family = MetricFamily("level", "Level", MetricFamily.GAUGE)
    metric = family.Metric()
    del family
    assert [name for name, _ in link.calls[2:]] == ["metric.delete", "metric.forget"]
    for operation, arguments in (("increment", [1]), ("set", [1]), ("value", [])):
        with pytest.raises(TritonModelException, match="'MetricFamily' has been deleted"):
            getattr(metric, operation)(*arguments)
    del metric
    assert len(link.calls) == 4


def test_without_a_server_there_are_no_metrics() -> None:
    with pytest.raises(TritonModelException, match="while a model is asked for its configuration"):
        MetricFamily("level", "Level", MetricFamily.GAUGE)
