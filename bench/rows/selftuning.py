"""A model that tunes itself, beside the same model with fixed settings of its queue, on a day that suits none."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.fleet import Fleet
from bench.load.calls import figures
from bench.load.day import length_s
from bench.load.tool import LoadFailed
from bench.models import settings
from bench.paths import WORK
from bench.rows.load import RATE
from bench.rows.row import Better, Cell, Facts, Row, Sample, Target
from bench.servers import probe
from bench.servers.endpoint import Endpoint

TUNED = "alipes, tunes itself"
DEFAULT = "alipes, as it is by default"
BEST = "alipes, best fixed setting"
#: A shorter measurement is a warm-up, and sees the day's beginning alone.
WHOLE_FROM_S = 1.0

#: By model.
Outcomes = dict[str, dict[str, Any]]


@dataclass
class Days:
    """The days of a run, which all rows on them read."""

    outcomes: list[Outcomes] = field(default_factory=list)

    def day(self, number: int, endpoint: Endpoint) -> Outcomes:
        """What a day brought, which is played where it was not.

        Raises:
            LoadFailed: If a request failed, or was answered wrongly.
        """
        while len(self.outcomes) <= number:
            self.outcomes.append(play(endpoint, len(self.outcomes), length_s()))
        return self.outcomes[number]


def play(endpoint: Endpoint, seed: int, seconds: float) -> Outcomes:
    """The first seconds of a day, for all models at once.

    Raises:
        LoadFailed: If a request failed, or was answered wrongly.
    """
    what = [endpoint.grpc_port, seed, seconds, settings.OBJECTIVE_MS, *settings.MODELS]
    outcomes: Outcomes = figures("bench.load.day_loop", what, seconds + 30)
    tuning = probe.get_json(endpoint.http_port, f"/v2/models/{settings.TUNED}/explain")["models"][0]["tuning"]
    outcomes[settings.TUNED] |= {"changed": tuning["changed"], "setting": tuning["setting"]}
    return outcomes


def best(outcomes: Outcomes) -> settings.Fixed:
    """The fixed setting that kept the objective most often on this day; the one with fewer late requests of two."""
    return max(settings.SWEEP, key=lambda fixed: (outcomes[fixed.model]["kept"], -outcomes[fixed.model]["late"]))


def _kept(outcomes: Outcomes) -> dict[str, int]:
    return {model: outcome["kept"] for model, outcome in outcomes.items()}


@dataclass
class SelfTuningRow:
    """What a day brought to three of the models: the one that tunes itself, the default, and the best afterwards."""

    facts: Facts
    days: Days

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Three readings of each day."""
        folder = settings.write(WORK / "selftuning")
        endpoint = fleet.alipes_on("selftuning", folder)
        counts = dict.fromkeys((TUNED, DEFAULT, BEST), 0)

        def measure(label: str, seconds: float) -> Sample:
            if seconds < WHOLE_FROM_S:
                play(endpoint, 0, seconds)
                return Sample(0.0)
            counts[label] += 1
            return self._sample(label, self.days.day(counts[label] - 1, endpoint))

        return [Cell(label, partial(measure, label)) for label in counts]

    def _sample(self, label: str, outcomes: Outcomes) -> Sample:
        fixed = best(outcomes) if label == BEST else settings.DEFAULT
        outcome = outcomes[settings.TUNED if label == TUNED else fixed.model]
        if label != TUNED and not outcome["kept"]:
            # Nothing can be divided by it.
            raise LoadFailed(f"{label}, kept the objective in no part of the day: this machine is too slow for the row")
        detail = outcome if label == TUNED else {**outcome, "setting": str(fixed), "all": _kept(outcomes)}
        return Sample(self._value(outcome), dict(detail))

    def _value(self, outcome: dict[str, Any]) -> float:
        if self.facts.unit == RATE:
            return float(outcome["answered"] / outcome["seconds"])
        return float(100 * outcome["kept"] / outcome["stretches"])


def self_tuning_rows() -> list[Row]:
    """How often the objective was kept, and that nothing was lost for it."""
    what = f"A day in {length_s():.0f} s, objective p99 {settings.OBJECTIVE_MS} ms"
    days = Days()
    kept = Facts(
        "selftuning",
        f"{what}: how often it is kept",
        "% of the day",
        Better.MORE,
        (Target(TUNED, BEST, 1.0), Target(TUNED, DEFAULT)),
    )
    rate = Facts("selftuning_rate", f"{what}: answers", RATE, Better.MORE, (Target(TUNED, BEST, 0.99),))
    return [SelfTuningRow(kept, days), SelfTuningRow(rate, days)]
