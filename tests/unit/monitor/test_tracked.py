"""Lines whose counters the caller keeps."""

from __future__ import annotations

from alipes.monitor.columns import COUNT, DURATIONS
from alipes.monitor.prometheus import Sample
from alipes.monitor.tracked import tracked_lines


def page(*counts: float) -> list[Sample]:
    """The counters of a model on several GPUs: executions, and as many microseconds in every part."""
    return [
        Sample(name, {"model": "m", "version": "1", "gpu_uuid": f"GPU-{number}"}, count)
        for number, count in enumerate(counts)
        for name in (COUNT, *DURATIONS.values())
    ]


def test_the_counters_of_a_model_on_several_gpus_are_added_up() -> None:
    tracker: dict[str, dict[str, int]] = {"m": {}}
    assert tracked_lines("here", [("m", 1)], page(5, 7), tracker, 1.0) == []
    # Only the first GPU has executed something since.
    (line,) = tracked_lines("here", [("m", 1)], page(8, 7), tracker, 2.0)
    assert line == "2.0,here,m," + ",".join(["3"] * (1 + len(DURATIONS)))
    assert set(tracker["m"].values()) == {15}
