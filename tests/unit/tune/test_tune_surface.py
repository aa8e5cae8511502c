"""Surfaces: what is likely between trials, and how sure that is."""

from __future__ import annotations

import numpy as np
import pytest
from alipes.tune.search.surface import Belief, Surface


def grid(count: int) -> np.ndarray:
    """Places in two directions, from 0 to 1."""
    line = np.linspace(0, 1, count)
    return np.array([(a, b) for a in line for b in line])


def test_a_smooth_figure_is_known_between_its_trials() -> None:
    places = grid(5)
    values = np.sin(2 * places[:, 0]) + places[:, 1]
    elsewhere = np.array([(0.3, 0.6), (0.85, 0.1)])
    belief = Surface(2).believe(places, values, elsewhere, np.ones(len(places)))
    assert belief.mean[:2] == pytest.approx(np.sin(2 * elsewhere[:, 0]) + elsewhere[:, 1], abs=0.02)
    assert belief.mean[2:] == pytest.approx(values, abs=0.02)


def test_what_is_far_from_all_trials_is_less_sure() -> None:
    places = np.array([(0.0, 0.0), (0.1, 0.0), (0.0, 0.1), (0.1, 0.1)])
    belief = Surface(2).believe(places, np.array([0.0, 1.0, 1.0, 2.0]), np.array([(0.05, 0.05), (1, 1)]), np.ones(4))
    assert belief.deviation[1] > 1.5 * belief.deviation[0]


def test_repeated_trials_make_a_place_surer() -> None:
    places = grid(3)
    values = places.sum(1)
    trials = np.array([4.0, *[1.0] * 8])
    belief = Surface(2).believe(places, values, places[:1], trials)
    once, often = belief.deviation[2], belief.deviation[1]
    assert once / 2 <= often < 0.7 * once


def test_one_unlucky_trial_is_believed_with_all_others() -> None:
    places = grid(5)
    values = places.sum(1)
    values[12] -= 0.3
    belief = Surface(2).believe(places, values, places[12:13], np.ones(len(places)))
    assert values[12] < belief.mean[13] < values[12] + 0.3


def test_equal_values_leave_room_for_others() -> None:
    belief = Surface(2).believe(grid(2), np.ones(4), np.array([(0.5, 0.5)]), np.ones(4))
    assert belief.mean == pytest.approx(np.ones(5))
    assert (belief.deviation > 0).all()


def test_a_gain_counts_what_is_above_alone() -> None:
    belief = Belief(np.array([0.0, 1.0, -1.0]), np.array([1.0, 1e-6, 1e-6]))
    assert belief.gain(0.0) == pytest.approx([0.3989, 1.0, 0.0], abs=1e-4)
    assert belief.above_zero() == pytest.approx([0.5, 1.0, 0.0], abs=1e-4)
