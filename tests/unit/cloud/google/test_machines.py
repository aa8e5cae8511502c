"""Machines with GPUs."""

from __future__ import annotations

import pytest
from alipes.cloud.google.machines import GPUS, machine_type
from alipes.errors import ConfigError


@pytest.mark.parametrize(
    ("vcpus", "gpus", "gpu_type", "expected"),
    [
        (16, 4, "t4", "n1-standard-16"),
        (96, 8, "v100", "n1-standard-96"),
        (4, 1, "l4", "g2-standard-4"),
        (24, 2, "l4", "g2-standard-24"),
        (12, 1, "a100", "a2-highgpu-1g"),
        (96, 16, "a100", "a2-megagpu-16g"),
        (208, 8, "h100", "a3-highgpu-8g"),
    ],
)
def test_the_machine_of_so_many_gpus_is_found(vcpus: int, gpus: int, gpu_type: str, expected: str) -> None:
    assert machine_type(vcpus, gpus, gpu_type) == expected


@pytest.mark.parametrize(
    ("vcpus", "gpus", "gpu_type", "problem"),
    [
        (16, 4, "m60", "gpu_type: 'm60' is none of t4, v100, "),
        (12, 4, "t4", "vcpus: an n1-standard machine has 1, 2, 4, 8, 16, 32, 64 or 96 vCPUs, not 12"),
        (16, 0, "t4", "gpus: a machine has 1, 2 or 4 GPUs of type t4, not 0"),
        (16, 8, "t4", "gpus: a machine has 1, 2 or 4 GPUs of type t4, not 8"),
        (16, 9, "v100", "gpus: a machine has 1, 2, 4 or 8 GPUs of type v100, not 9"),
        (16, 2, "l4", "no machine has gpus=2, vcpus=16 of type l4; there are gpus=1, vcpus=4; "),
        (224, 4, "h200", "no machine has gpus=4, vcpus=224 of type h200; there are gpus=8, vcpus=224$"),
    ],
)
def test_a_machine_that_does_not_exist_is_a_value_error(vcpus: int, gpus: int, gpu_type: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as found:
        machine_type(vcpus, gpus, gpu_type)
    assert isinstance(found.value, ConfigError)


@pytest.mark.extra("google")
@pytest.mark.parametrize("gpu_type", GPUS)
def test_nodes_have_the_driver_installed_by_gke(gpu_type: str) -> None:
    from alipes.cloud.google import create_gpu_node_pool_config

    gpus, vcpus = next(iter(GPUS[gpu_type].machines), (1, 4))
    config = create_gpu_node_pool_config(vcpus, gpus, gpu_type, disk_size_gb=50)
    (accelerator,) = config.accelerators
    assert (accelerator.accelerator_type, accelerator.accelerator_count) == (GPUS[gpu_type].accelerator, gpus)
    assert accelerator.gpu_driver_installation_config.gpu_driver_version.name == "LATEST"
    assert "https://www.googleapis.com/auth/devstorage.read_only" in config.oauth_scopes
    assert config.disk_size_gb == 50
