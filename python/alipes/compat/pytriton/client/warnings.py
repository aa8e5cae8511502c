"""The warnings of PyTriton's clients. None is given here: all time-outs act, over either protocol."""

from __future__ import annotations

__all__ = ["NotSupportedTimeoutWarning", "PyTritonWarning"]


class PyTritonWarning(UserWarning):
    """The root of them."""


class NotSupportedTimeoutWarning(PyTritonWarning):
    """A time-out has no effect."""
