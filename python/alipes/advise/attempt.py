"""Tries a change on a running server under its own traffic; the server goes back by itself when this falls silent."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from alipes.advise.findings import Change
from alipes.advise.reading import Flow, Reading, flows
from alipes.config.override import from_document
from alipes.config.render import config_json
from alipes.errors import AlipesError
from alipes.periodic import periodic
from alipes.tune.variant import changed, provisional

if TYPE_CHECKING:
    from alipes.client import Client

__all__ = ["Attempt", "attempt"]

_SILENCE_S: Final = 10.0
"""The server goes back after so many seconds without a word."""
_WORD_S: Final = 3.0


@dataclass(frozen=True)
class Attempt:
    """What a change did.

    Attributes:
        model: The model.
        change: What was changed.
        before: What happened in the time before; `None` where nobody asked.
        after: What happened in as long a time with the change.
        is_in_force: Whether it stays.
    """

    model: str
    change: Change
    before: Flow | None
    after: Flow | None
    is_in_force: bool

    def __str__(self) -> str:
        """For people."""
        end = "it stays until the server ends or the model is loaded again" if self.is_in_force else "it was taken back"
        if self.before is None or self.after is None:
            return f"{self.model}: tried {self.change}, but nobody asked the model meanwhile; {end}"
        return (
            f"{self.model}: with {self.change}, {self.after.rate:,.0f} inferences/s instead of "
            f"{self.before.rate:,.0f}, {self.after.mean_ms:.3g} ms each instead of {self.before.mean_ms:.3g} ms, "
            f"{self.after.queue_ms:.3g} ms in the queue instead of {self.before.queue_ms:.3g} ms; {end}"
        )


def attempt(client: Client, model: str, change: Change, before: Flow | None, seconds: float, *, keep: bool) -> Attempt:
    """Loads a model with a change, looks, and takes the change back.

    Args:
        client: Of a server that loads by name.
        model: The model.
        change: What to change.
        before: What happened before.
        seconds: How long to look.
        keep: Leaves it, where it made nothing slower and nothing failed.

    Raises:
        NotReady: If the server does not load by name.
        InferError: If it cannot load the model with the change.
    """
    config = changed(from_document(client.config(model)), {change.knob: change.after})
    tried = provisional(config, _SILENCE_S)
    client.load(model, config=tried)
    try:
        with periodic(lambda: _is_loaded(client, model, tried), _WORD_S, "alipes-advise-word"):
            first = Reading.now(client, model)
            threading.Event().wait(seconds)
            found = flows(first, Reading.now(client, model), client)
        after = found[0] if found else None
        stays = keep and _is_better(before, after)
        if stays:
            client.load(model, config=config_json(config))
    except BaseException:
        with suppress(AlipesError):  # it goes back by itself then
            client.load(model)
        raise
    if not stays:
        client.load(model)
    return Attempt(model, change, before, after, stays)


def _is_better(before: Flow | None, after: Flow | None) -> bool:
    if before is None or after is None or after.failures > before.failures:
        return False
    return after.mean_ms < before.mean_ms and after.rate >= before.rate * 0.95


def _is_loaded(client: Client, model: str, config: str) -> bool:
    """Whether the server takes the word that the change is still being tried."""
    try:
        client.load(model, config=config)
    except AlipesError:  # the server goes back by itself, and the next call says what is wrong
        return False
    return True
