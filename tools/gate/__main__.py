"""Runs the gate: `python tools/gate COMMAND [--only STAGE]... [--shuffle [SEED]]`, for lint, test, gate or proof.

Two stages run at a time where they leave each other room; what a stage writes is in build/reports, and printed when it
has ended. A failed stage keeps only those that need it from running. The table at the end says what each stage took, by
the clock and of the cores; one that took more of the cores than its budget has failed, too. How the output of failed
ones ended is repeated last. Reports in JUnit's format are in build/reports, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

from runner import ROOT, Outcome, new_seed, run
from stages import ALL, STAGES
from table import PAGE, last_words, left_to_others, page, printed


def main() -> int:
    """The exit code: 0 where every stage that ran has passed."""
    parser = argparse.ArgumentParser(prog="tools/gate", description=__doc__)
    parser.add_argument("command", choices=[*ALL, "table"])
    parser.add_argument("--only", action="append", choices=[stage.name for stage in STAGES], help="these stages alone")
    parser.add_argument(
        "--shuffle", nargs="?", type=int, const=new_seed(), metavar="SEED", help="Python's tests in another order"
    )
    options = parser.parse_args()
    if options.command == "table":
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    subprocess.run([sys.executable, ROOT / "tools" / "settings"], check=True)
    stages = [stage.within(options.command) for stage in STAGES if options.command in stage.runs_in]
    if options.only:
        stages = [stage for stage in stages if stage.name in options.only]
    began = time.monotonic()
    outcomes = [*run(stages, options.command, options.shuffle)]
    print(f"\n{printed(outcomes, time.monotonic() - began)}\n")
    if not options.only:
        print(left_to_others(options.command))
    if options.shuffle is not None:
        print(f"shuffled with --shuffle {options.shuffle}")
    failed = [outcome for outcome in outcomes if outcome.fails]
    if failed:
        print(f"failed: {_names(failed)}; run one again with `python tools/gate {options.command} --only NAME`")
    for outcome in failed:
        print(f"\n{last_words(outcome.stage)}")
    return 1 if failed else 0


def _names(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(outcome.stage.name for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
