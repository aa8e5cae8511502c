"""What a level says of itself."""

from __future__ import annotations

import pytest
from alipes.loadtest import Closed, Level, Open, Window
from alipes.loadtest.pace import Pace
from support.load_windows import histogram, report, window


def level(*windows: Window, settled: bool = True) -> Level:
    return Level(Closed(1), windows, len(windows), settled, threads=1)


def test_windows_become_one() -> None:
    both = level(window(100, failures={"a": 1}), window(300, failures={"a": 2, "b": 1}, sending_ms=5.0))
    assert (both.result.answers, both.result.seconds, both.rate.mean) == (400, 2.0, 200)
    assert both.result.failures == {"a": 3, "b": 1}
    assert both.result.sending_ms == pytest.approx((1.0 * 100 + 5.0 * 300) / 400)
    assert both.latency_ms.mean == pytest.approx(10)


def test_figures_come_from_the_windows_that_settled_it() -> None:
    windows = [window(10), window(100), window(100), window(100)]
    assert Level(Closed(1), windows, 3, True, 1).rate.mean == 100


def test_a_good_level_has_no_notes() -> None:
    assert level(window(), window(), window()).notes() == []


@pytest.mark.parametrize(
    ("windows", "settled", "note"),
    [
        (
            [window(100), window(200)],
            False,
            "did not settle in 2 windows: the rate went from 100 to 200/s, the latency from 10 to 10 ms",
        ),
        ([window(0, failures={"busy": 1}), window(0, failures={"busy": 2})], False, "3 failed: busy"),
        ([window(tester_cores=0.95)], True, "it may be the limit"),
        ([window(lateness=histogram(*[2.0] * 100))], True, "turned to requests late, to 99 % of them within 2 ms"),
        ([window(queueing=histogram(*[2.0] * 100))], True, "waited for a connection, 99 % of them for at most 2 ms"),
        ([window(failures={"no such model": 3})], True, "3 failed: no such model"),
        ([window(dropped=7)], True, "7 were due and never sent"),
    ],
)
def test_what_a_reader_has_to_know_is_a_note(windows: list[Window], settled: bool, note: str) -> None:
    notes = level(*windows, settled=settled).notes()
    assert len(notes) == 1
    assert note in notes[0]


def test_a_report_as_text_is_its_table_and_its_notes() -> None:
    lines = str(report()).splitlines()
    assert lines[0].split()[:4] == ["load", "rate", "±", "p50"]
    assert [line.split("  ")[0].strip() for line in lines[1:3]] == ["1 in flight", "8 in flight"]
    assert lines[0].index("rate") + len("rate") == lines[1].index("/s") + len("/s") == lines[2].index("/s") + len("/s")
    assert lines[3:] == ["8 in flight: 3 failed: </script> refused"]


@pytest.mark.parametrize(
    ("pace", "silence", "noted"),
    [
        (Closed(1), [], False),
        (Closed(1), [window(0)], True),
        (Closed(1), [window(0), window(failures={"no": 1}), window(0, failures={"no": 1})], False),
        (Closed(1), [window(1, 3000.0), window(0), window(0)], False),
        (Open.at(1), [window(0), window(0)], False),
        (Open.at(100), [window(0), window(0)], True),
    ],
)
def test_a_server_that_may_hang_is_a_note(pace: Pace, silence: list[Window], noted: bool) -> None:
    windows = [window(), *silence]
    notes = Level(pace, windows, len(windows), False, 1).notes()
    assert any("nothing came any more in the last" in note for note in notes) is noted


def test_figures_are_a_dictionary() -> None:
    figures = level(window(), window()).to_dict()
    assert (figures["loop"], figures["load"], figures["answers"], figures["failed"]) == ("closed", 1, 200, 0)
    assert (figures["p50_ms"], figures["p99.9_ms"], figures["rate"]) == (10, 10, 100)
