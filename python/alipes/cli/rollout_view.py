"""A look at a rollout, as a table on a terminal and as a line elsewhere; and its end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from alipes.cli.amounts import span

if TYPE_CHECKING:
    from alipes.rollout import Finding, Look, Outcomes, RolloutEnd, RolloutPlan, TimeCounts

__all__ = ["end_of", "end_of_canary", "line_of", "table_of"]

_COLOURS: Final = {"good": "green", "worse": "red", "open": "yellow"}


def line_of(look: Look) -> str:
    """One look in one line."""
    of_candidate = "copies for" if look.share == 0 else "requests of"
    counts = f"{look.candidate.requests} {of_candidate} the candidate, {look.stable.requests} requests of the other"
    open_findings = [finding.about for finding in look.judgement.findings if finding.verdict == "open"]
    waits = f" (more requests are needed for: {', '.join(open_findings)})" if open_findings else ""
    return f"{look.share:g} %: {counts}; {look.judgement.verdict}{waits}{_silence(look)}"


def end_of(end: RolloutEnd, plan: RolloutPlan) -> str:
    """The end of a rollout in one line: which version has all requests, why, and what is left to be done."""
    several = f" at {len(end.servers)} servers" if len(end.servers) > 1 else ""
    if end.promoted:
        return f"version {plan.candidate} has all requests now{several}: {end.reason}"
    if not end.unset:
        return f"version {plan.stable} has all requests again{several}: {end.reason}"
    count = len(end.servers)
    back = count - len(end.unset)
    again = f"has all requests again at {back} of {count} servers" if back else "could not be given all requests again"
    # The reason may be that of a server that cannot be set.
    why = "".join(f"; {error}" for error in end.unset.values() if f"{error}" not in end.reason)
    return (
        f"version {plan.stable} {again}: {end.reason}{why}; once {' and '.join(end.unset)} can be set: "
        f"alipes models traffic {plan.model} {plan.stable}=1 --url={','.join(end.unset)}"
    )


def end_of_canary(end: RolloutEnd, service: str) -> str:
    """The end of a rollout of a canary of KServe in one line."""
    if end.promoted:
        return f"the canary of {service} has all requests now: {end.reason}"
    if not end.unset:
        return f"the canary of {service} is taken back: {end.reason}"
    why = "".join(f"; {error}" for error in end.unset.values() if f"{error}" not in end.reason)
    what = f"the canary of {service} could not be taken back: {end.reason}{why}"
    return f"{what}; see: alipes deploy kserve status {service}"


def table_of(look: Look) -> RenderableType:
    """One look as two tables: what became of the requests, and what that says."""
    both = (("stable", look.stable), ("candidate", look.candidate))
    streams = any(outcomes.interval.total for _, outcomes in both)
    versions = Table(box=None, pad_edge=False)
    for heading in ("", "requests", "failed", "median", "99 %", *(["interval, 99 %"] if streams else [])):
        versions.add_column(heading, justify="left" if not heading else "right")
    for name, outcomes in both:
        versions.add_row(name, *_cells(outcomes), *([_quantile(outcomes.interval, 0.99)] if streams else []))
    findings = Table(box=None, pad_edge=False)
    for heading in ("compared", "worse by", "tolerated", "verdict"):
        findings.add_column(heading)
    for finding in look.judgement.findings:
        colour = _COLOURS[str(finding.verdict)]
        findings.add_row(finding.about, _interval(finding), f"{finding.tolerated:.2%}", Text(finding.verdict, colour))
    has = "copies of the requests" if look.share == 0 else f"{look.share:g} % of the requests"
    title = Text(f"the candidate has {has}, for {look.elapsed_s:.0f} s{_silence(look)}")
    return Group(title, versions, Text(), findings)


def _silence(look: Look) -> str:
    """Which servers did not answer."""
    return f"; without an answer of {', '.join(look.silent)}" if look.silent else ""


def _cells(outcomes: Outcomes) -> tuple[str, str, str, str]:
    failed = f"{outcomes.failed / outcomes.requests:.2%}" if outcomes.requests else "-"
    median, high = (_quantile(outcomes.latency, quantile) for quantile in (0.5, 0.99))
    return str(outcomes.requests), failed, median, high


def _quantile(times: TimeCounts, quantile: float) -> str:
    return span(times.at(times.total * quantile)) if times.total else "-"


def _interval(finding: Finding) -> str:
    if math.isinf(finding.high):
        return "-"
    return f"{finding.low:.2%} to {finding.high:.2%}"
