"""Which rows follow from counters."""

from __future__ import annotations

from alipes.monitor.columns import COUNT, DURATIONS, chosen
from alipes.monitor.ledger import Ledger, Row
from alipes.monitor.prometheus import Sample

KEY = ("m", 1)


def page(count: float, microseconds: float = 0, key: tuple[str, int] = KEY, **others: float) -> list[Sample]:
    """The counters of a model: executions, and the same duration for every part."""
    labels = {"version": str(key[1]), "model": key[0]}
    samples = {COUNT: count, **dict.fromkeys(DURATIONS.values(), microseconds), **others}
    return [Sample(name, labels, value) for name, value in samples.items()]


def row(count: int, microseconds: int, timestamp: float = 2.0) -> Row:
    return Row(timestamp, "here", "m", 1, count, dict.fromkeys(DURATIONS, microseconds))


def test_the_first_look_is_what_later_ones_are_compared_with() -> None:
    ledger = Ledger("here", [KEY])
    assert ledger.look(1.0, page(5, 50)) == []
    assert ledger.look(2.0, page(7, 80)) == [row(2, 30)]


def test_an_idle_model_has_no_row_and_its_times_come_in_the_next() -> None:
    ledger = Ledger("here", [KEY])
    ledger.look(0.0, page(5, 50))
    assert ledger.look(1.0, page(5, 60)) == []
    assert ledger.look(2.0, page(6, 70)) == [row(1, 20)]


def test_counters_that_began_again_count_from_nothing() -> None:
    ledger = Ledger("here", [KEY])
    ledger.look(0.0, page(100, 1000))
    ledger.look(1.0, page(110, 1100))
    assert ledger.look(2.0, page(3, 30)) == [row(3, 30)]
    assert ledger.look(2.0, page(4, 40)) == [row(1, 10)]


def test_a_server_that_began_again_and_executed_nothing_yet_has_no_row() -> None:
    ledger = Ledger("here", [KEY])
    ledger.look(0.0, page(100, 1000))
    assert ledger.look(1.0, page(0, 0)) == []
    assert ledger.look(2.0, page(2, 20)) == [row(2, 20)]


def test_a_model_that_appears_later_counts_from_zero() -> None:
    ledger = Ledger("here", [KEY])
    ledger.look(0.0, [])
    assert ledger.look(1.0, []) == []
    assert ledger.look(2.0, page(2, 20)) == [row(2, 20)]


def test_rows_come_in_the_order_of_the_models_and_of_no_others() -> None:
    keys = [("b", 1), ("a", 2)]
    ledger = Ledger("here", keys)
    ledger.look(0.0, [])
    samples = [*page(1, 1, ("a", 2)), *page(1, 1, ("b", 1)), *page(1, 1, ("a", 1)), *page(1, 1, ("c", 1))]
    assert [(found.model, found.version) for found in ledger.look(1.0, samples)] == keys


def test_without_a_list_every_reported_model_has_rows() -> None:
    ledger = Ledger("here", None)
    ledger.look(0.0, [])
    samples = [*page(1, 1, ("b", 1)), *page(1, 1, ("a", 2))]
    assert [(found.model, found.version) for found in ledger.look(1.0, samples)] == [("a", 2), ("b", 1)]


def test_numbers_with_a_fraction_are_rounded() -> None:
    ledger = Ledger("here", [KEY])
    ledger.look(0.0, page(0.0, 0.0))
    assert ledger.look(2.0, page(1.0, 7038.4)) == [row(1, 7038)]


def test_further_columns_are_sums_since_the_row_before_or_what_holds_now() -> None:
    ledger = Ledger("here", [KEY], chosen(["version", "failure", "pending", "cpu_utilization"]))
    ledger.look(0.0, page(0))
    failures = [
        Sample("nv_inference_request_failure", {"model": "m", "version": "1", "reason": reason}, 2.0)
        for reason in ("OTHER", "BACKEND")
    ]
    now = page(1, nv_inference_pending_request_count=4)
    (found,) = ledger.look(1.0, [*now, *failures, Sample("nv_cpu_utilization", {}, 0.5)])
    assert found.extras == {"version": 1.0, "failure": 4.0, "pending": 4.0, "cpu_utilization": 0.5}


def test_the_use_of_gpus_is_the_mean_over_all_of_them() -> None:
    ledger = Ledger("here", [KEY], chosen(["gpu_utilization"]))
    ledger.look(0.0, page(0))
    gpus = [Sample("nv_gpu_utilization", {"gpu_uuid": uuid}, value) for uuid, value in (("a", 0.2), ("b", 0.6))]
    (found,) = ledger.look(1.0, [*page(1), *gpus])
    assert found.extras == {"gpu_utilization": 0.4}
