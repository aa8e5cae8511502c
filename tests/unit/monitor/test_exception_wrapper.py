"""Exceptions that travel."""

from __future__ import annotations

import pickle
import traceback

import pytest
from alipes.errors import ConfigError, ServeTimeout
from alipes.monitor import ExceptionWrapper


class Awkward(Exception):
    """One that can be written and not read."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def wrapped(error: BaseException) -> ExceptionWrapper:
    try:
        raise error
    except BaseException as raised:
        copy = pickle.loads(pickle.dumps(ExceptionWrapper(raised)))
        assert isinstance(copy, ExceptionWrapper)
        return copy


@pytest.mark.parametrize(
    "error", [ValueError("x"), StopIteration(), KeyboardInterrupt(), ConfigError("x"), ServeTimeout("y")]
)
def test_an_exception_is_raised_again_with_its_traceback(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        wrapped(error).reraise()
    assert "in wrapped" in "".join(traceback.format_exception(caught.value))


def test_an_exception_that_cannot_travel_goes_as_its_words() -> None:
    with pytest.raises(RuntimeError, match="Awkward: a b"):
        wrapped(Awkward("a", "b")).reraise()
