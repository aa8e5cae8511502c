"""A finished run: what every report is made from."""

from dataclasses import dataclass

from bench.results import RowResult
from bench.run import Plan


@dataclass(frozen=True)
class Run:
    """Results with what is needed to read them."""

    #: When it began, ISO 8601.
    date: str
    machine: dict[str, str]
    plan: Plan
    results: list[RowResult]
    #: What was left out, and why.
    skipped: dict[str, str]
