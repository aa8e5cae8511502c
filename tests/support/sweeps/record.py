"""Records a sweep: every point of a space is measured on a real server, several times, round after round."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from alipes import Server
from alipes.loadtest import Measuring, ModelRequests
from alipes.tune import Point
from alipes.tune.live import LiveTrials, read_live
from alipes.tune.machine import Machine
from alipes.tune.possible import Checks
from alipes.tune.trials import Workload

from support.sweeps.models import Swept
from support.sweeps.sweep import Figures, Sweep

__all__ = ["record"]


def record(name: str, swept: Swept, rounds: int, window_s: float, say: Callable[[str], None]) -> Sweep:
    """Measures every possible point `rounds` times; a later round begins when the one before has seen all points.

    Args:
        name: Of the model.
        swept: The model and its space.
        rounds: How often each point is measured.
        window_s: How long, in seconds; a quarter of it besides as warm-up.
        say: Called with what goes on.

    Raises:
        RuntimeError: If a point gives no figures.
    """
    measuring = Measuring(window_s=window_s, windows=1, warm_up_s=window_s / 4)
    seen: dict[Point, list[Figures]] = {}
    with tempfile.TemporaryDirectory(prefix="alipes-sweep-") as folder:
        swept.add(Path(folder))
        with Server(folder, port=0, host="127.0.0.1", model_control_mode="explicit", load_model=[name]) as server:
            models = read_live(server.url, [name])
            workload = Workload([ModelRequests(name)], measuring)
            trials = LiveTrials(server.url, models, workload)
            checks = Checks(Machine.here(), models, trials.completed())
            sweep = Sweep(name, swept.about, _machine(), _measured(rounds, measuring), swept.values, seen)
            points = [point for point in sweep.space.points() if not checks.reason(point)]
            with trials:
                for number in range(rounds):
                    say(f"{name}: round {number + 1} of {rounds}, {len(points)} points, {_load()}")
                    for point in points:
                        outcome = trials.run(point)
                        if outcome.failure:
                            raise RuntimeError(f"{point}: {outcome.failure}")
                        seen.setdefault(point, []).append(outcome.figures)
    return sweep


def _machine() -> str:
    machine = Machine.here()
    return f"{machine.processor}, {machine.cores} cores, {_load()}"


def _load() -> str:
    return f"load average {os.getloadavg()[0]:.1f}"


def _measured(rounds: int, measuring: Measuring) -> str:
    return f"{rounds} rounds of {measuring.window_s:g} s over HTTP, after {measuring.warm_up_s:g} s of warm-up"
