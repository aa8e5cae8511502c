"""Machines with GPUs: which there are, and the description of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from alipes.errors import ConfigError

if TYPE_CHECKING:
    from google.cloud import container_v1 as container

__all__ = ["GPUS", "Gpu", "create_gpu_node_pool_config", "machine_type"]

_OAUTH_SCOPES: Final = tuple(
    f"https://www.googleapis.com/auth/{name}"
    for name in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
)

_N1_VCPUS: Final = (1, 2, 4, 8, 16, 32, 64, 96)


@dataclass(frozen=True)
class Gpu:
    """A kind of GPU.

    Attributes:
        accelerator: Google's name for it.
        machines: The machines that have it built in, by GPUs and vCPUs; empty if it is added to n1 machines.
        counts: How many an n1 machine may have.
    """

    accelerator: str
    machines: dict[tuple[int, int], str]
    counts: tuple[int, ...] = ()


def _n1(name: str, *counts: int) -> Gpu:
    return Gpu(f"nvidia-tesla-{name}", {}, counts)


def _series(prefix: str, vcpus_each: int, *counts: int) -> dict[tuple[int, int], str]:
    return {(count, count * vcpus_each): f"{prefix}-{count}g" for count in counts}


# Source: Google's tables of GPU machine types.
GPUS: Final = {
    "t4": _n1("t4", 1, 2, 4),
    "v100": _n1("v100", 1, 2, 4, 8),
    "p100": _n1("p100", 1, 2, 4),
    "p4": _n1("p4", 1, 2, 4),
    "k80": _n1("k80", 1, 2, 4, 8),
    "l4": Gpu(
        "nvidia-l4",
        {
            (gpus, vcpus): f"g2-standard-{vcpus}"
            for gpus, vcpus in ((1, 4), (1, 8), (1, 12), (1, 16), (1, 32), (2, 24), (4, 48), (8, 96))
        },
    ),
    "a100": Gpu("nvidia-tesla-a100", {**_series("a2-highgpu", 12, 1, 2, 4, 8), (16, 96): "a2-megagpu-16g"}),
    "a100-80gb": Gpu("nvidia-a100-80gb", _series("a2-ultragpu", 12, 1, 2, 4, 8)),
    "h100": Gpu("nvidia-h100-80gb", _series("a3-highgpu", 26, 1, 2, 4, 8)),
    "h200": Gpu("nvidia-h200-141gb", {(8, 224): "a3-ultragpu-8g"}),
}
"""The kinds of GPU, by the name that callers use."""


def machine_type(vcpus: int, gpus: int, gpu_type: str) -> str:
    """The machine with so many vCPUs and GPUs.

    Raises:
        ConfigError: If there is none; the message lists those that there are.
    """
    gpu = GPUS.get(gpu_type)
    if gpu is None:
        raise ConfigError(f"gpu_type: {gpu_type!r} is none of {', '.join(GPUS)}", key="gpu_type")
    if not 1 <= gpus <= 16 or (gpu.counts and gpus not in gpu.counts):
        counts = gpu.counts or sorted({count for count, _ in gpu.machines})
        raise ConfigError(f"gpus: a machine has {_or(counts)} GPUs of type {gpu_type}, not {gpus}", key="gpus")
    if not gpu.machines:
        if vcpus not in _N1_VCPUS:
            raise ConfigError(f"vcpus: an n1-standard machine has {_or(_N1_VCPUS)} vCPUs, not {vcpus}", key="vcpus")
        return f"n1-standard-{vcpus}"
    if (gpus, vcpus) not in gpu.machines:
        there = "; ".join(f"gpus={count}, vcpus={size}" for count, size in gpu.machines)
        raise ConfigError(f"no machine has gpus={gpus}, vcpus={vcpus} of type {gpu_type}; there are {there}")
    return gpu.machines[gpus, vcpus]


def create_gpu_node_pool_config(vcpus: int, gpus: int, gpu_type: str, **fields: Any) -> container.NodeConfig:
    """The description of nodes with GPUs, on which GKE installs NVIDIA's driver by itself.

    Args:
        vcpus: Virtual CPUs of a node.
        gpus: GPUs of a node.
        gpu_type: `t4`, `v100`, `p100`, `p4` and `k80` on n1 machines; `l4`, `a100`, `a100-80gb`, `h100` and `h200` on
            the machines that have them.
        **fields: Further fields of `google.cloud.container_v1.NodeConfig`, such as ``spot=True`` or ``disk_size_gb``.

    Raises:
        ConfigError: If there is no such machine.
    """
    machine = machine_type(vcpus, gpus, gpu_type)
    from google.cloud import container_v1 as container

    newest = container.GPUDriverInstallationConfig.GPUDriverVersion.LATEST
    accelerator = container.AcceleratorConfig(
        accelerator_count=gpus,
        accelerator_type=GPUS[gpu_type].accelerator,
        gpu_driver_installation_config=container.GPUDriverInstallationConfig(gpu_driver_version=newest),
    )
    fields = {"oauth_scopes": list(_OAUTH_SCOPES), **fields}
    return container.NodeConfig(machine_type=machine, accelerators=[accelerator], **fields)


def _or(counts: tuple[int, ...] | list[int]) -> str:
    *most, last = map(str, counts)
    return f"{', '.join(most)} or {last}" if most else last
