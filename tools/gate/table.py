"""The table of stages: printed at the end of a run, and kept in CONTRIBUTING.md."""

from __future__ import annotations

from collections.abc import Sequence

from runner import ROOT, Outcome, log_of
from stages import STAGES, Stage

PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- stages: written by `make docs` from tools/gate/stages.py -->\n", "<!-- end of stages -->\n"
LAST_LINES, LINE_LENGTH = 12, 200


def printed(outcomes: Sequence[Outcome]) -> str:
    """What a run took, stage by stage, in 80 columns."""
    lines = [f"{'stage':<16} {'verdict':<12} {'took':>8} {'cores':>8} {'budget':>8}"]
    for outcome in outcomes:
        took, cores, budget = _clock(outcome.took_s), _clock(outcome.cpu_s), _clock(outcome.stage.budget_s)
        lines.append(f"{outcome.stage.name:<16} {outcome.verdict:<12} {took:>8} {cores:>8} {budget:>8}")
    took_s, cpu_s = sum(outcome.took_s for outcome in outcomes), sum(outcome.cpu_s for outcome in outcomes)
    lines.append(f"{'all':<29} {_clock(took_s):>8} {_clock(cpu_s):>8}")
    return "\n".join(lines)


def last_words(stage: Stage) -> str:
    """How the output of a stage ended, which names the tests that failed: last, where a reader looks first."""
    log = log_of(stage)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join([f"the end of {log.relative_to(ROOT)}:", *(f"  {line[:LINE_LENGTH]}" for line in lines)])


def page() -> str:
    """CONTRIBUTING.md with the table of today's stages."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    rows = ["| stage | proves | runs in | budget of the cores |", "|---|---|---|---:|"]
    for stage in STAGES:
        runs_in = ", ".join(f"`make {name}`" for name in stage.runs_in)
        rows.append(f"| {stage.name} | {stage.proves} | {runs_in} | {_clock(stage.budget_s)} |")
    return f"{before}{BEGIN}\n" + "\n".join(rows) + f"\n\n{END}{after}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
