"""The table of stages: printed at the end of a run, and kept in CONTRIBUTING.md."""

from __future__ import annotations

from collections.abc import Sequence

from runner import ROOT, Outcome, log_of
from stages import GATE, LINT, PROOF, STAGES, TEST, Stage

PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- stages: written by `make docs` from tools/gate/stages.py -->\n", "<!-- end of stages -->\n"
LAST_LINES, LINE_LENGTH = 12, 200
# The commands that do what another one leaves out.
WIDER = {LINT: (GATE, PROOF), TEST: (GATE, PROOF), GATE: (PROOF,), PROOF: ()}


def printed(outcomes: Sequence[Outcome], took_s: float) -> str:
    """What a run took in all, and stage by stage in the order of the stages, in 80 columns."""
    lines = [f"{'stage':<16} {'verdict':<12} {'took':>8} {'cores':>8} {'budget':>8}"]
    order = [stage.name for stage in STAGES]
    for outcome in sorted(outcomes, key=lambda outcome: order.index(outcome.stage.name)):
        took, cores, budget = _clock(outcome.took_s), _clock(outcome.cpu_s), _clock(outcome.stage.budget_s)
        lines.append(f"{outcome.stage.name:<16} {outcome.verdict:<12} {took:>8} {cores:>8} {budget:>8}")
    cpu_s = sum(outcome.cpu_s for outcome in outcomes)
    lines.append(f"{'all':<29} {_clock(took_s):>8} {_clock(cpu_s):>8}")
    return "\n".join(lines)


def left_to_others(command: str) -> str:
    """What a command leaves to `make gate` and `make proof`, a line for each; nothing where it leaves nothing."""
    lines, known = [], {command}
    for other in WIDER[command]:
        left = [stage.name for stage in STAGES if other in stage.runs_in and not known.intersection(stage.runs_in)]
        known.add(other)
        long = ["the long forms of tests", "tests with peers"] if other == PROOF else []
        lines.append(f"left to `make {other}`: {', '.join([*left, *long])}")
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
        longer = f", in the proof {_clock(stage.within(PROOF).budget_s)}" if stage.long_s else ""
        rows.append(f"| {stage.name} | {stage.proves} | {runs_in} | {_clock(stage.budget_s)}{longer} |")
    return f"{before}{BEGIN}\n" + "\n".join(rows) + f"\n\n{END}{after}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
