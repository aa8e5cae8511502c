"""Estimates of what clusters will cost."""

from __future__ import annotations

import pytest
from alipes.cloud.google import create_gpu_node_pool_config, estimate

pytestmark = pytest.mark.extra("google")

container = pytest.importorskip("google.cloud.container_v1", reason="needs google-cloud-container")


def test_a_node_pool_costs_its_machines_and_their_gpus() -> None:
    config = create_gpu_node_pool_config(vcpus=16, gpus=4, gpu_type="t4")
    found = estimate(container.NodePool(name="gpus", initial_node_count=2, config=config))
    assert found.per_hour == pytest.approx(2 * (16 * 0.0475 + 4 * 0.35))
    assert str(found).splitlines() == [
        "  2 x n1-standard-16: 1.52 USD an hour",
        "  8 x nvidia-tesla-t4: 2.80 USD an hour",
        "  in all 4.32 USD an hour, an estimate by list prices of early 2025; disks and traffic come on top",
    ]


def test_built_in_gpus_are_counted_once() -> None:
    config = create_gpu_node_pool_config(vcpus=12, gpus=1, gpu_type="a100")
    found = estimate(container.NodePool(initial_node_count=1, config=config))
    assert found.per_hour == pytest.approx(3.67)


def test_a_cluster_costs_itself_and_its_pools_in_every_zone() -> None:
    pool = container.NodePool(initial_node_count=2, locations=["a", "b", "c"], config=container.NodeConfig())
    found = estimate(container.Cluster(node_pools=[pool]))
    assert found.per_hour == pytest.approx(0.10 + 6 * 0.034)


def test_a_machine_without_a_price_makes_the_sum_a_lower_bound() -> None:
    config = container.NodeConfig(machine_type="c9-future-8", spot=True)
    found = estimate(container.Cluster(initial_node_count=3, node_config=config))
    assert not found.is_complete
    assert "3 x c9-future-8 (spot: about a third): price not known here" in str(found)
    assert "in all at least 0.10 USD an hour" in str(found)
