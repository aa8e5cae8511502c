"""What the options of `alipes loadtest` say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile

from alipes.cli.failures import UsageFailed

if TYPE_CHECKING:
    import numpy as np

    from alipes.loadtest import Check
    from alipes.loadtest.pace import Pace

__all__ = ["arrays", "check_of", "paces_of", "windows_of"]

_NEEDED: Final = "give {} a file that np.savez wrote, with an array for each name"


def paces_of(
    callers: str | None, rate: str | None, even: bool, intervals: Path | None, in_flight: int
) -> Sequence[Pace]:
    """The levels of load.

    Raises:
        UsageFailed: If the options do not fit together.
    """
    from alipes.loadtest import Closed, Open

    if sum(option is not None for option in (callers, rate, intervals)) > 1:
        raise UsageFailed("give one of --callers, --rate and --intervals")
    if intervals is not None:
        return [Open.replayed(intervals)]
    if rate is not None:
        return [
            Open(Open.at(value).pieces, seed=None if even else 0, in_flight=in_flight)
            for value in _numbers("--rate", rate)
        ]
    return [Closed(int(value)) for value in _numbers("--callers", callers or "1")]


def _numbers(option: str, text: str) -> list[float]:
    """`1,8,64` or `START:END:STEP`."""
    from alipes.loadtest.pace import spread

    try:
        if ":" in text:
            first, last, *step = (float(part) for part in text.split(":"))
            return list(spread(first, last, *(step or [1.0])))
        return [float(part) for part in text.split(",")]
    except (TypeError, ValueError) as error:
        raise UsageFailed(f"write {option} as numbers with commas between, or START:END:STEP, not {text!r}") from error


def windows_of(duration_s: float, window_s: float) -> tuple[float, int]:
    """The length and the number of windows that fill a time: as near to the wanted length as equal ones come."""
    windows = max(round(duration_s / window_s), 1)
    return duration_s / windows, windows


def check_of(text: str) -> Check:
    """`first`, or a file of arrays.

    Raises:
        UsageFailed: If it is neither.
    """
    from alipes.loadtest import Check

    return Check(None if text == "first" else arrays("--check", Path(text)))


def arrays(option: str, file: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file of numpy, by name.

    Raises:
        UsageFailed: If it is none.
    """
    import numpy as np

    if option == "--data" and str(file).lstrip().startswith(("{", "[")):
        raise UsageFailed(
            f"write alipes loadtest --path /NAME --body '{file}'", "--data takes a file that np.savez wrote"
        )
    try:
        with np.load(file, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}
    except OSError as error:
        raise UsageFailed(_NEEDED.format(option), str(error)) from error
    # numpy takes any other file for a pickle, and says how to trust it.
    except (ValueError, AttributeError, TypeError, BadZipFile) as error:
        raise UsageFailed(_NEEDED.format(option), f"'{file}' is no such file") from error
