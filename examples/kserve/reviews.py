"""Reviews of a shop, put together from words, and their tokens."""

from __future__ import annotations

import random
import re
from typing import Final

import numpy as np

__all__ = ["LENGTH", "WORDS", "reviews", "tokens"]

GOOD: Final = ["great", "lovely", "perfect", "friendly", "quick", "tasty", "bright", "quiet", "sturdy", "soft"]
BAD: Final = ["awful", "broken", "rude", "slow", "stale", "noisy", "flimsy", "rough", "dirty", "late"]
THINGS: Final = ["delivery", "service", "lamp", "chair", "soup", "bread", "staff", "fan", "shirt", "box"]
PLAIN: Final = ["the", "a", "was", "is", "and", "very", "really", "so", "quite", "this", "my", "it", "with", "today"]
WORDS: Final = ("[pad]", "[unknown]", "not", "but", *PLAIN, *THINGS, *GOOD, *BAD)
"""Every word that the network knows, by its number."""

LENGTH: Final = 16
"""Tokens of a review; longer ones are cut."""

_NUMBERS: Final = {word: number for number, word in enumerate(WORDS)}


def tokens(texts: list[str]) -> np.ndarray:
    """The numbers of the words of texts, `[texts, LENGTH]`; 0 stands behind the last word."""
    ids = np.zeros((len(texts), LENGTH), np.int64)
    for row, text in zip(ids, texts, strict=True):
        words = re.findall(r"[a-z]+", text.lower())[:LENGTH]
        row[: len(words)] = [_NUMBERS.get(word, 1) for word in words]
    return ids


def reviews(count: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Reviews, some of which say `not`, which turns a word around; and for each whether it is good.

    Args:
        count: How many.
        seed: Another number, other reviews.
    """
    draw = random.Random(seed)
    texts, good = [], []
    for _ in range(count):
        is_good = draw.random() < 0.5
        parts = [_clause(draw, is_good, draw.random() < 0.4) for _ in range(draw.choice((1, 1, 2)))]
        texts.append(f" {draw.choice(('and', 'and', 'it'))} ".join(parts))
        good.append(is_good)
    return texts, np.array(good)


def _clause(draw: random.Random, is_good: bool, is_negated: bool) -> str:
    word = draw.choice(GOOD if is_good != is_negated else BAD)
    strength = draw.choice(("very ", "really ", "so ", "quite ", ""))
    return (
        f"{draw.choice(('the', 'this', 'my'))} {draw.choice(THINGS)} was {'not ' if is_negated else ''}{strength}{word}"
    )
