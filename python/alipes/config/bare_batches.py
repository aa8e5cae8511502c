"""How large a batch of a model without a configuration may be, where models are files as they were published."""

from __future__ import annotations

from typing import Final

__all__ = ["BYTES", "ROWS"]

ROWS: Final = 1024
"""Largest batch of models without a configuration in a store, or named by themselves. Those who send there know no such
limit: KServe's own runtimes take any number of rows. And at most so many wait: with 4, as Triton has it, scikit-learn
answered a quarter of the requests of 64 connections."""

BYTES: Final = 16 << 20
"""Bytes of the inputs of such a batch: a network takes many times that for what it computes on the way. 27 pictures of
224 x 224 pixels."""
