"""`make fuzz FOR=SECONDS`: runs every fuzzer in turn, for so many seconds each, and prints what came of it.

What a fuzzer found stays in a folder of the user's cache, and the next run begins with it: long runs can be made of
short ones. `--inputs` passes over fuzzers that have tried so many in all. A crash is an input that breaks a promise:

    python tools/fuzz keep json-request /path/of/the/crash "what it showed"

shortens it and adds it to the vectors of its fuzzer, which the gate replays from then on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import fuzzers
import record
import search
import vectors


def main() -> int:
    """Does what the command line says."""
    if sys.argv[1:2] == ["keep"]:
        return keep(sys.argv[2:])
    options = parsed()
    chosen = search.named(fuzzers.built(options.sanitizer, options.only), options.only)
    records = [record.Record.read(fuzzer.name) for fuzzer in chosen]
    for fuzzer, kept in zip(chosen, records, strict=True):
        if options.inputs and kept.inputs >= options.inputs and not kept.crashes:
            continue
        print(f"fuzz: {fuzzer.name}, {options.seconds} s", flush=True)
        kept.add(search.run(fuzzer, options.seconds))
        kept.write()
    print(record.table(records))
    return 1 if any(kept.crashes for kept in records) else 0


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("seconds", type=int, help="how long each fuzzer searches")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these fuzzers alone")
    parser.add_argument("--inputs", type=int, default=0, help="pass over fuzzers that have tried so many in all")
    parser.add_argument("--sanitizer", choices=["address"], help="look for reads beside memory, too; half as fast")
    return parser.parse_args()


def keep(arguments: Sequence[str]) -> int:
    """Adds a crash to the vectors of its fuzzer."""
    parser = argparse.ArgumentParser(prog="tools/fuzz keep")
    parser.add_argument("fuzzer")
    parser.add_argument("crash", type=Path)
    parser.add_argument("fact", help="what it showed, as the name of a test would say it")
    options = parser.parse_args(arguments)
    [fuzzer] = search.named(fuzzers.built(None, [options.fuzzer]), [options.fuzzer])
    shortest = search.shortened(fuzzer, options.crash)
    vectors.add(fuzzer.name, options.fact, shortest)
    record.Record.read(fuzzer.name).forget_crash(options.crash).write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
