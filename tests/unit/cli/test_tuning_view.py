"""`alipes explain` of a model that tunes itself: what it wants, what it has set, and what each change brought."""

from __future__ import annotations

from io import StringIO
from typing import Any

from alipes.cli.tuning_view import changed, tuned
from alipes.cli.verdict import verdict
from alipes.cli.waiting_view import view
from rich.console import Console

SETTING: dict[str, Any] = {"queue_delay_us": 0, "batch": 32, "instances": 2}
BEFORE: dict[str, Any] = {"p99_us": 31_000, "missed": 0.25, "requests_per_s": 180.0, "computing_us_per_row": 5_000}
AFTER: dict[str, Any] = {"p99_us": 17_500, "missed": 0.004, "requests_per_s": 181.0, "computing_us_per_row": 1_200}
CHANGE: dict[str, Any] = {
    "ago_us": 2_000_000,
    "from": SETTING,
    "to": SETTING | {"queue_delay_us": 5_000},
    "why": "missed_company",
    "outcome": "kept",
    "before": BEFORE,
    "after": AFTER,
}
TUNING: dict[str, Any] = {
    "objective_p99_us": 20_000,
    "setting": CHANGE["to"],
    "bounds": {"queue_delay_us": 10_000, "batch": 64, "instances": 1},
    "changed": 1,
    "changes": [CHANGE],
}


def test_objective_setting_and_bounds_are_one_line() -> None:
    assert tuned(TUNING) == (
        "99 of 100 requests within 20 ms; now 5 ms of delay, batches of 32 rows, 2 instances; "
        "at most 10 ms of delay, batches of 64 rows, 1 instance"
    )


def test_a_change_says_what_why_and_what_it_brought() -> None:
    assert changed(CHANGE) == (
        "queue delay 0 µs to 5 ms: too many were late while instances were idle: requests come in company; "
        "99 of 100 within 31 ms before, 17.5 ms after, 25 % and 0.4 % late, 5 ms and 1.2 ms of computing a row; kept"
    )


def test_a_watched_change_shows_what_was_before_it() -> None:
    watched = {key: value for key, value in CHANGE.items() if key != "after"} | {"outcome": "watched"}
    assert changed(watched).endswith("; 99 of 100 within 31 ms, 25 % late; being watched")


def test_several_values_may_change_and_new_words_are_shown() -> None:
    change = CHANGE | {"to": {"queue_delay_us": 0, "batch": 16, "instances": 1}, "why": "sunshine", "outcome": "lost"}
    assert changed(change).startswith("batch 32 to 16, instances 2 to 1: sunshine; ")
    assert changed(change).endswith("; lost")


def test_a_model_that_tunes_itself_shows_its_changes() -> None:
    queue = {"waiting": 0, "instances": 2, "busy_instances": 0, "hold": "nothing_waits", "oldest": [], "decisions": []}
    scheduling = {"kind": "dynamic", "max_batch_size": 64, "preferred_batch_sizes": [32], "max_queue_delay_us": 5_000}
    model = {"name": "m", "version": "1", "ready": True, "scheduling": scheduling, "queue": queue, "tuning": TUNING}
    out = StringIO()
    Console(file=out, width=400).print(view({"models": [model]}))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert lines[1:3] == [f"verdict {verdict(model)}", f"tunes itself {tuned(TUNING)}"]
    assert lines[-2:] == ["changes of the model itself, newest first", f"2 s {changed(CHANGE)}"]
