"""Adds a skeleton: `python tools/new {backend,flag,route,metric} NAME`.

The skeleton compiles, is free of lints and passes its tests. The lines that are left to fill in are marked `todo:`.
Nothing is written where the name exists (exit code 1) or a place to insert at is not found (exit code 2).
"""

from __future__ import annotations

import argparse
import sys

import backend
import flag
import metric
import route
from plan import Plan, Refused

RECIPES = {"backend": backend, "flag": flag, "route": route, "metric": metric}


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="tools/new", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parsers = parser.add_subparsers(dest="recipe", required=True)
    for name, recipe in RECIPES.items():
        recipe.add_arguments(parsers.add_parser(name, help=(recipe.__doc__ or "").splitlines()[0]))
    options = parser.parse_args()
    plan = Plan()
    try:
        RECIPES[options.recipe].plan(plan, options)
    except Refused as refusal:
        print(f"tools/new: {refusal}. Nothing was written.", file=sys.stderr)
        return refusal.exit_code
    print(plan.write())
    return 0


if __name__ == "__main__":
    sys.exit(main())
