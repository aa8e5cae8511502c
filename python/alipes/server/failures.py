"""Why a load or unload request was not granted, in the words that clients hear."""

from __future__ import annotations

from typing import Self

from alipes.disclosure import public
from alipes.errors import AlipesError

__all__ = ["LoadFailed", "load_failed", "poll_failed"]


class LoadFailed(AlipesError):
    """A load or unload request cannot be granted.

    Attributes:
        code: Triton's name of the status, such as ``INVALID_ARG``.
        reason: What is wrong, without the words that Triton puts around it.
        advice: What to do about it, which neither text says; empty where the failure alone does not show it.
    """

    def __init__(self, code: str, message: str, *, reason: str | None = None, advice: str = "") -> None:
        """Takes what the client is answered; ``reason`` defaults to the whole message. No private path leaves."""
        super().__init__(public(message))
        self.code = code
        self.reason = public(reason) if reason is not None else str(self)
        self.advice = advice

    def advised(self, advice: str) -> Self:
        """The same failure with what to do about it behind Triton's words, unless it says so already."""
        if not advice or advice in self.reason:
            return self.bare()
        message = str(self)
        end = "\n" if message.endswith("\n") else ""
        text = f"{_joined(message.removesuffix(end), advice)}{end}"
        return type(self)(self.code, text, reason=_joined(self.reason, advice))

    def bare(self) -> Self:
        """The same failure without its traceback, whose frames hold what they used: other failures, and the request.

        What is kept is never raised itself: raise a bare one of it.
        """
        return type(self)(self.code, str(self), reason=self.reason)


def _joined(text: str, advice: str) -> str:
    """Some of Triton's texts end with a semicolon already."""
    return f"{text.removesuffix(';')}; {advice}"


def load_failed(model: str, reason: str, *, advice: str = "") -> LoadFailed:
    """The failure of a model that cannot be loaded, for a reason that clients hear, and what to do about it."""
    text = f"load failed for model '{model}': {reason}\n"
    return LoadFailed("INVALID_ARG", text, reason=reason, advice=advice)


def poll_failed(model: str, reason: str) -> LoadFailed:
    """The failure of a model whose folder or configuration cannot be read. Clients get no detail, the log does."""
    return LoadFailed("INTERNAL", f"failed to load '{model}', failed to poll from model repository", reason=reason)
