"""What machines cost by the hour: a table that grows old.

US dollars, on demand, region us-central1, rounded, as Google listed them in early 2025. Other regions cost up to half
as much again; spot machines a third; disks, addresses and traffic come on top.
"""

from __future__ import annotations

from typing import Final

__all__ = ["AS_OF", "CLUSTER", "GPUS", "MACHINES", "PER_VCPU"]

AS_OF: Final = "early 2025"

CLUSTER: Final = 0.10
"""A cluster itself."""

PER_VCPU: Final = {"e2-standard": 0.0335, "n1-standard": 0.0475, "n2-standard": 0.0486}
"""Machines whose price grows with their vCPUs, by series; their memory is in it."""

MACHINES: Final = {
    "e2-medium": 0.034,
    "g2-standard-4": 0.71,
    "g2-standard-8": 0.85,
    "g2-standard-12": 1.00,
    "g2-standard-16": 1.15,
    "g2-standard-24": 2.00,
    "g2-standard-32": 1.73,
    "g2-standard-48": 4.00,
    "g2-standard-96": 8.00,
    "a2-highgpu-1g": 3.67,
    "a2-highgpu-2g": 7.35,
    "a2-highgpu-4g": 14.69,
    "a2-highgpu-8g": 29.39,
    "a2-ultragpu-1g": 5.07,
    "a2-ultragpu-2g": 10.14,
    "a2-ultragpu-4g": 20.27,
    "a2-ultragpu-8g": 40.55,
    "a3-highgpu-1g": 11.06,
    "a3-highgpu-2g": 22.12,
    "a3-highgpu-4g": 44.24,
    "a3-highgpu-8g": 88.49,
}
"""Machines with a price of their own; GPUs that are built in are in it."""

GPUS: Final = {
    "nvidia-tesla-t4": 0.35,
    "nvidia-tesla-v100": 2.48,
    "nvidia-tesla-p100": 1.46,
    "nvidia-tesla-p4": 0.60,
    "nvidia-tesla-k80": 0.45,
}
"""A GPU that is added to a machine."""
