"""The command line: `python -m support.sweeps FOLDER` records all sweeps, `--only NAME` one of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from support.sweeps.models import SWEPT
from support.sweeps.record import record
from support.sweeps.sweep import FOLDER


def main() -> int:
    """Records what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m support.sweeps", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="where the files go")
    parser.add_argument("--only", choices=SWEPT, action="append", help="record this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=6, help="measurements of each point")
    parser.add_argument("--window", type=float, default=0.5, help="seconds of each measurement")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.only or SWEPT:
        sweep = record(name, SWEPT[name], options.rounds, options.window, _say)
        _say(f"written: {sweep.write(options.folder)}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
