"""Trained models in services: none beyond its memory, and none moved by one that is added."""

from __future__ import annotations

import random
from collections import Counter

from alipes.deploy.kserve.description import Model, Models
from alipes.deploy.kserve.placement import placed

ROOM = 1000


def models(sizes: list[int], shards: int = 100) -> Models:
    items = tuple(Model(name=f"m{number}", uri="s3://a/b", memory=str(size)) for number, size in enumerate(sizes))
    return Models(items=items, shards=shards)


def test_a_model_goes_into_the_first_service_with_room() -> None:
    assert placed(models([600, 600, 400, 400, 1000]), ROOM) == [0, 1, 0, 1, 2]


def test_what_fits_nowhere_has_no_place() -> None:
    assert placed(models([1001, 900, 900, 900, 100], shards=2), ROOM) == [None, 0, 1, None, 0]


def test_hundreds_of_models_never_overfill_a_service() -> None:
    sizes = random.Random(7).choices(range(1, 400), k=500)
    numbers = placed(models(sizes), ROOM)
    used: Counter[int] = Counter()
    for number, size in zip(numbers, sizes, strict=True):
        assert number is not None
        used[number] += size
    assert max(used.values()) <= ROOM
    # The room that is left is less than one in ten.
    assert sum(sizes) >= 0.9 * ROOM * len(used)


def test_a_model_at_the_end_moves_no_other() -> None:
    sizes = random.Random(8).choices(range(1, 400), k=200)
    for added in (1, 500, 1000):
        assert placed(models([*sizes, added]), ROOM)[:-1] == placed(models(sizes), ROOM)
