"""Our decisions in Knative's place are its own, which `support.knative` recorded from its program."""

from __future__ import annotations

import pytest
from alipes.autoscale import KnativeSettings
from alipes.autoscale.windows import AverageWindow, MaximumWindow
from alipes.errors import ConfigError
from support.knative import Scenario, decided_here, recorded, scenarios


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
def test_each_decision_is_the_one_that_knative_takes(scenario: Scenario) -> None:
    assert decided_here(scenario) == recorded()[scenario.name]


def test_every_recorded_scenario_is_compared() -> None:
    assert list(recorded()) == [scenario.name for scenario in scenarios()]


def test_recorded_scenarios_show_panic_delay_and_bounds() -> None:
    known = recorded()
    assert max(desired for desired, _, _ in known["max-scale"]) > max(bounded for _, bounded, _ in known["max-scale"])
    assert any(desired < bounded for desired, bounded, _ in known["min-scale"])
    assert known["burst with panic"] != known["late panic"]


def test_a_mean_begins_anew_after_a_window_without_values() -> None:
    window = AverageWindow(4)
    assert window.mean(0) == 0
    window.record(0, 8)
    window.record(1, 4)
    assert window.mean(1) == 6
    assert window.mean(2) == 6  # of the seconds that were seen
    assert window.mean(5) == 0
    window.record(9, 3)
    assert window.mean(9) == 3


def test_seconds_without_a_value_count_as_nothing() -> None:
    window = AverageWindow(4)
    window.record(0, 8)
    window.record(3, 4)
    assert window.mean(3) == 3
    window.record(5, 4)
    assert window.mean(5) == 2


def test_the_largest_decision_holds_for_the_window() -> None:
    window = MaximumWindow(6, 2)
    assert [window.record(second, value) for second, value in ((1, 5), (3, 2), (5, 3), (7, 1), (9, 1))] == [
        5,
        5,
        5,
        3,
        3,
    ]
    assert window.record(11, 1) == 1


def test_settings_have_knatives_names_with_and_without_the_prefix() -> None:
    wanted = {"autoscaling.knative.dev/window": "1m30s", "target": "8", "target-utilization-percentage": "50"}
    settings = KnativeSettings(container_concurrency=6).with_values(wanted)
    assert (settings.window_s, settings.total, settings.aim) == (90, 6, 3)
    assert KnativeSettings().total == 100
    assert KnativeSettings(metric="rps").aim == 140
    assert KnativeSettings(window_s=15, panic_window_percent=10).panic_window_s == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("windows", "60s", "has no setting 'windows'"),
        ("window", "60", "'60' is no value of this setting"),
        ("window", "5s", "expected 6 to 3600"),
        ("metric", "cpu", "expected concurrency or rps"),
        ("max-scale", "-1", "expected 0 to"),
        ("enable-scale-to-zero", "no", "expected true or false"),
    ],
)
def test_a_setting_that_knative_would_refuse_is_an_error(name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        KnativeSettings().with_values({name: text})
