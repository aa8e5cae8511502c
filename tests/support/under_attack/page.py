"""The page that says who survives what: `docs/explanation/under-attack.md`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from support.under_attack import table

PAGE: Final = Path(__file__).parents[3] / "docs" / "explanation" / "under-attack.md"

ATTACKS: Final = "attacks"
RESULTS: Final = "results"


def part(name: str, page: str) -> str:
    """What stands between the two comments with a name.

    Raises:
        LookupError: If the page has no such comments.
    """
    found = _between(name).search(page)
    if found is None:
        raise LookupError(f"the page has no part {name!r}")
    return found[2]


def replaced(name: str, text: str, page: str) -> str:
    """The page with another text between these comments."""
    part(name, page)
    return _between(name).sub(lambda found: f"{found[1]}\n{text}\n\n{found[3]}", page)


def measured(found: table.Rounds, versions: str, rounds: int) -> str:
    """The results, with what has to be known of how they came about."""
    cores = len(os.sched_getaffinity(0))
    times = "one round" if rounds == 1 else f"{rounds} rounds"
    facts = (
        f"Medians of {times} on a machine of {cores} cores, which servers, attackers and the steady client share; "
        f"{versions}. Without an attack the 99th percentile is: {table.quiet(found)}."
    )
    return f"{facts}\n\n{table.results(found)}"


def _between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}: [^\n]* -->\n)(.*?)(<!-- end of {name} -->)", re.DOTALL)
