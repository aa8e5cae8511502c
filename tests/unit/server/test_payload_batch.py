"""When payloads that wait for others are sent."""

from __future__ import annotations

import pytest
from alipes.server.payloads.batch import Batch, BatchLimits
from alipes.server.payloads.sink import Payload

SMALL = Payload({}, b"12345")


@pytest.mark.parametrize(
    ("limits", "count"),
    [(BatchLimits(3, 1000, 3600.0), 3), (BatchLimits(100, 20, 3600.0), 4), (BatchLimits(100, 1000, 0.0), 1)],
    ids=["size", "bytes", "age"],
)
def test_a_batch_is_due_at_the_first_limit_it_reaches(limits: BatchLimits, count: int) -> None:
    batch = Batch(limits)
    for _ in range(2):  # a batch that was taken begins again
        for _ in range(count - 1):
            batch.add(SMALL)
            assert not batch.is_due
        batch.add(SMALL)
        assert batch.is_due
        assert batch.take() == [SMALL] * count
        assert not batch
        assert not batch.is_due


def test_nobody_waits_longer_than_until_a_batch_is_due() -> None:
    batch = Batch(BatchLimits(100, 1000, 5.0))
    assert batch.wait_s(60.0) == 60.0
    batch.add(SMALL)
    assert 0 < batch.wait_s(60.0) <= 5.0
    assert batch.wait_s(1.0) <= 1.0
