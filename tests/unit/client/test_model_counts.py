"""`ModelCounts`, the one reader of a model's statistics."""

from __future__ import annotations

from typing import Any

from alipes.client.model_counts import ModelCounts, StageCount


def version(requests: int, size: int) -> dict[str, Any]:
    """Statistics as gRPC has them, where numbers are texts, and what is zero may be left out."""
    return {
        "inference_count": str(requests * size),
        "execution_count": requests,
        "inference_stats": {
            "success": {"count": requests, "ns": requests * 100},
            "queue": {"count": requests, "ns": requests * 10},
            "compute_infer": {"count": requests, "ns": requests * 50},
            "fail": {},
        },
        "batch_stats": [{"batch_size": str(size), "compute_infer": {"count": requests, "ns": requests * 50}}],
    }


def test_the_counts_of_a_version_are_read_from_numbers_and_texts() -> None:
    counts = ModelCounts.read(version(3, 2))
    assert (counts.rows, counts.executions) == (6, 3)
    assert counts.part("success") == StageCount(3, 300)
    assert counts.part("fail") == counts.part("cache_hit") == counts.part("anything") == StageCount()
    assert counts.batches[2]["compute_infer"] == StageCount(3, 150)
    assert counts.batches[2]["compute_input"] == StageCount()


def test_versions_are_added_up_with_batches_of_one_size_together() -> None:
    counts = ModelCounts.of_all([version(3, 2), version(1, 2), version(2, 4)])
    assert (counts.rows, counts.executions) == (16, 6)
    assert counts.part("queue") == StageCount(6, 60)
    assert {size: stages["compute_infer"] for size, stages in counts.batches.items()} == {
        2: StageCount(4, 200),
        4: StageCount(2, 100),
    }


def test_a_server_that_counts_nothing_is_read_as_zero() -> None:
    assert ModelCounts.read({}) == ModelCounts.of_all([{}])
    assert ModelCounts.of_all([]).part("success") == StageCount()
