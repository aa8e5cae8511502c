"""Measures rows: contenders in turn (A B C A B C …), round after round."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.fleet import Fleet
from bench.results import RowResult
from bench.rows.row import Cell, Facts, Row

WARM_UP_S = 0.4


@dataclass(frozen=True)
class Plan:
    """How long and how often."""

    rounds: int
    #: Time of a cell in one round.
    seconds: float


#: Told before each measurement: the row's title and the contender.
Report = Callable[[str, str], None]


def measure(row: Row, fleet: Fleet, plan: Plan, report: Report) -> RowResult:
    """Measures a row.

    Raises:
        StartFailed, WrongAnswer, LoadFailed: If a server does not start, answers wrongly or fails under load.
    """
    facts = row.facts
    report(facts.title, "starting")
    try:
        return _measured(facts, row.cells(fleet), plan, report)
    finally:
        fleet.end_row()


def _measured(facts: Facts, cells: Sequence[Cell], plan: Plan, report: Report) -> RowResult:
    result = RowResult(facts)
    if not facts.once:
        for cell in cells:
            report(facts.title, f"{cell.label}, warming up")
            cell.measure(min(WARM_UP_S, plan.seconds))
    for _ in range(1 if facts.once else plan.rounds * facts.pieces):
        for cell in cells:
            report(facts.title, cell.label)
            result.add(cell.label, cell.measure(plan.seconds / facts.pieces))
    return result


def measurements(rows: Sequence[Row], cells_each: int, plan: Plan) -> int:
    """About how many measurements lie ahead, for a progress bar."""
    return sum(1 if row.facts.once else (plan.rounds * row.facts.pieces + 1) * cells_each for row in rows)
