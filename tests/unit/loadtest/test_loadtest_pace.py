"""When requests are sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alipes import ConfigError
from alipes.loadtest import Closed, Open
from alipes.loadtest.pace import spread


def test_paces_say_what_they_are() -> None:
    assert (str(Closed(8)), Closed(8).value) == ("8 in flight", 8)
    assert (str(Open.at(1500)), Open.at(1500).value) == ("1,500/s even", 1500)
    assert str(Open.at(1500, seed=1)) == "1,500/s random"


def test_replayed_intervals_are_microseconds(tmp_path: Path) -> None:
    file = tmp_path / "intervals"
    file.write_text("1000\n3000\n")
    pace = Open.replayed(file)
    assert pace.intervals_s == pytest.approx((0.001, 0.003))
    assert pace.value == pytest.approx(500)
    assert str(pace) == "2 replayed intervals"


@pytest.mark.parametrize("text", ["", "0\n0\n", "-1\n", "soon\n"])
def test_intervals_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "intervals"
    file.write_text(text)
    with pytest.raises(ConfigError, match="microseconds"):
        Open.replayed(file)


def test_a_range_has_its_ends() -> None:
    assert spread(4, 16, 4) == [4, 8, 12, 16]
    assert spread(0.1, 0.3, 0.1) == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(("first", "last", "step"), [(4, 1, 1), (1, 4, 0), (1, 4, -1)])
def test_a_range_downwards_is_refused(first: float, last: float, step: float) -> None:
    with pytest.raises(ConfigError, match="START:END:STEP"):
        spread(first, last, step)


@pytest.mark.parametrize("wrong", [lambda: Closed(0), lambda: Open.at(0), lambda: Open.at(float("nan"))])
def test_a_load_of_nothing_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigError):
        wrong()  # type: ignore[operator]


def test_bursts_come_again_and_have_a_mean_rate() -> None:
    pace = Open.bursts(100, 900, every_s=4, length_s=1)
    assert (pace.pieces, pace.repeats) == (((3, 100, 100), (1, 900, 900)), True)
    assert pace.value == pytest.approx(300)
    assert str(pace) == "100 to 900/s even"


@pytest.mark.parametrize("wrong", [{"length_s": 4}, {"length_s": 0}, {"rate": -1}, {"peak": 0}, {"peak": float("nan")}])
def test_bursts_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Open.bursts(**{"rate": 1, "peak": 2, "every_s": 4, "length_s": 1} | wrong)
