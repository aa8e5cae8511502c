"""What the options of `alipes loadtest` say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile

from alipes.cli.connection import with_scheme
from alipes.cli.failures import UsageFailed
from alipes.cli.shapes import read_shape

if TYPE_CHECKING:
    import numpy as np

    from alipes.loadtest import Candidate, Check
    from alipes.loadtest.measure import Requests
    from alipes.loadtest.pace import Pace

__all__ = ["arrays", "candidate", "check_of", "paces_of", "requests_of"]

_NEEDED: Final = "give {} a file that np.savez wrote, with an array for each name"


def candidate(word: str, model: str, address: str, requests: Callable[..., Requests], encrypted: bool) -> Candidate:
    """An address, a version of the model, or a model.

    Raises:
        UsageFailed: If it is none of these.
    """
    from alipes.loadtest import Candidate

    if ":" in word:
        return Candidate(word, with_scheme(word, encrypted=encrypted), requests(model))
    if model and word.isdecimal():
        return Candidate(f"version {word}", address, requests(model, word))
    if model:
        raise UsageFailed(f"give --compare two addresses, or versions of {model}; leave MODEL out to compare models")
    return Candidate(word, address, requests(word))


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


def requests_of(  # noqa: PLR0913, PLR0917  # what the options say
    model: str,
    version: str,
    batch: int,
    shape: Sequence[str] | None,
    zero: bool,
    path: str | None,
    body: Sequence[Path] | None,
    content_type: str,
    data: Path | None,
) -> Requests:
    """What is sent.

    Raises:
        UsageFailed: If the options do not fit together.
    """
    from alipes.loadtest import ModelRequests, Posts

    if path is not None:
        if model or not body:
            raise UsageFailed("give --path with --body, and without a model")
        return Posts(path, [one.read_bytes() for one in body], content_type)
    if not model:
        raise UsageFailed("name a model, or give --path and --body")
    if data is not None:
        if zero or shape:
            raise UsageFailed("give --data without --zero and --shape: the arrays have their values and shapes")
        return ModelRequests(model, version, data=arrays("--data", data))
    return ModelRequests(model, version, batch, dict(map(read_shape, shape or ())), "zero" if zero else "random")


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

    try:
        with np.load(file, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}
    except OSError as error:
        raise UsageFailed(_NEEDED.format(option), str(error)) from error
    # numpy takes any other file for a pickle, and says how to trust it.
    except (ValueError, AttributeError, TypeError, BadZipFile) as error:
        raise UsageFailed(_NEEDED.format(option), f"'{file}' is no such file") from error
