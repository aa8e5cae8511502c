"""Advice from the statistics of a running server: which stage limits a model, what to change, what that would bring.

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

if TYPE_CHECKING:
    from alipes.advise.advise import Advice, advise
    from alipes.advise.attempt import Attempt
    from alipes.advise.findings import Change, Finding
    from alipes.advise.reading import Flow

__all__ = ["Advice", "Attempt", "Change", "Finding", "Flow", "advise"]

_HOMES = {
    "Advice": "alipes.advise.advise",
    "Attempt": "alipes.advise.attempt",
    "Change": "alipes.advise.findings",
    "Finding": "alipes.advise.findings",
    "Flow": "alipes.advise.reading",
    "advise": "alipes.advise.advise",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
