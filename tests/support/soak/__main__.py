"""The command line: `python -m support.soak FOLDER SECONDS` runs a soak, without SECONDS it draws what is there."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from support.soak.finding import findings
from support.soak.picture import svg
from support.soak.record import FILE, Record
from support.soak.run import Soak
from support.soak.series import warm_up_s
from support.soak.table import table

PICTURE = "slopes.svg"
TABLE = "slopes.txt"


def main() -> int:
    """Does what the command line says; 1 if something grows that must not, or something went wrong."""
    options = _parsed()
    wrong: list[str] = []
    if options.seconds is not None:
        seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
        _say(f"seed {seed}; samples go into {options.folder / FILE}")
        outcome = Soak(options.folder, options.seconds, seed, _say, leak=options.leak, calm=options.calm).run()
        _say(outcome.story)
        wrong = outcome.wrong
    grows = report(options.folder, options.warm_up)
    for text in wrong:
        _say(f"wrong: {text}")
    return 1 if grows or wrong else 0


def report(folder: Path, warm_up: float | None) -> bool:
    """Prints and draws the slopes of the last run of a folder; whether one of them grows that must not."""
    record = Record.read(folder)
    found = findings(record, warm_up_s(record.seconds) if warm_up is None else warm_up)
    text = table(found)
    (folder / TABLE).write_text(text + "\n", encoding="utf-8")
    (folder / PICTURE).write_text(svg(record, found), encoding="utf-8")
    print(text, flush=True)
    _say(f"drawn in {folder / PICTURE}")
    if any(finding.verdict == "too short" for finding in found):
        _say(f"too short for a verdict: its warm-up takes {found[0].warm_up_s:.0f} s, and a slope some time behind it")
    return any(finding.verdict == "grows" for finding in found)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m support.soak", description=__doc__)
    parser.add_argument("folder", type=Path, help="where samples, table and picture are; a further run adds to it")
    parser.add_argument("seconds", type=float, nargs="?", help="how long the server is soaked; without it, only draw")
    parser.add_argument("--seed", type=int, help="throws the dice as a run did that printed it")
    parser.add_argument("--leak", action="store_true", help="let a model keep memory, which has to be found")
    parser.add_argument("--calm", action="store_true", help="honest traffic alone, and no faults")
    parser.add_argument(
        "--warm-up", type=float, help="seconds that count for nothing; by default a quarter, two minutes at least"
    )
    return parser.parse_args()


def _say(text: str) -> None:
    print(f"soak: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
