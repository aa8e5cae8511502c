"""The settings of Knative's scaler: annotations of a service, and those of the cluster that act on one service."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from alipes.errors import ConfigError

__all__ = ["ANNOTATION", "KnativeSettings"]

ANNOTATION: Final = "autoscaling.knative.dev/"
"""What the names of a service's annotations begin with."""

_LEAST_TARGET: Final = 0.01
_UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_SOFT_CONCURRENCY: Final = 100.0
_RATE: Final = 200.0


@dataclass(frozen=True, kw_only=True)
class KnativeSettings:
    """What decides how Knative scales one service; the values by default are Knative's.

    Attributes:
        container_concurrency: Most requests that a replica works on at a time; 0 is no limit.
        metric: What is counted: requests in the service (`concurrency`), or requests per second (`rps`).
        target: What one replica is to have of it; `None` is the limit, or Knative's own value without one.
        utilization: The share of the target that is aimed at.
        window_s: Over how many seconds the mean is taken.
        panic_window_percent: The part of the window over which a sudden rise is looked for.
        panic_threshold: How many times the ready replicas a sudden rise has to need.
        scale_down_delay_s: For how many seconds fewer replicas have to be enough before there are fewer.
        activation_scale: Fewest replicas, where there are any.
        least: Fewest replicas.
        most: Most replicas; 0 is no limit.
        initial_scale: Replicas at the beginning.
        max_scale_up_rate: How many times the ready replicas there may be after one decision.
        max_scale_down_rate: By how much one decision may divide them.
        target_burst_capacity: Room for a burst below which requests pass the activator; -1 always has them pass it.
        scale_to_zero: Whether the last replica may go.
        grace_s: Seconds for which requests have to pass the activator before the last replica goes.
        retention_s: Seconds for which the last replica stays at least, once it is not needed.

    Source: Knative 1.21 (serving 0.48), `config/core/configmaps/autoscaler.yaml`, `pkg/autoscaler/config/config.go`.
    """

    container_concurrency: int = 0
    metric: str = "concurrency"
    target: float | None = None
    utilization: float = 0.7
    window_s: int = 60
    panic_window_percent: float = 10.0
    panic_threshold: float = 2.0
    scale_down_delay_s: float = 0.0
    activation_scale: int = 0
    least: int = 0
    most: int = 0
    initial_scale: int = 1
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    target_burst_capacity: float = 211.0
    scale_to_zero: bool = True
    grace_s: float = 30.0
    retention_s: float = 0.0

    @property
    def total(self) -> float:
        """What a replica may have at most."""
        if self.metric == "rps":
            return _RATE if self.target is None else self.target
        limit = float(self.container_concurrency)
        if self.target is None:
            return limit or _SOFT_CONCURRENCY
        return min(self.target, limit) if limit else self.target

    @property
    def aim(self) -> float:
        """What a replica is to have: the share of `total` that is aimed at."""
        return max(_LEAST_TARGET, self.total * self.utilization)

    @property
    def panic_window_s(self) -> int:
        """Over how many seconds a sudden rise is looked for."""
        nanoseconds = int(self.window_s * 1e9 * self.panic_window_percent / 100)  # as Go has it
        return max(1, (nanoseconds + 500_000_000) // 1_000_000_000)

    def with_values(self, values: Mapping[str, str]) -> Self:
        """These settings with others in their place.

        Args:
            values: By Knative's names: of annotations, with `autoscaling.knative.dev/` in front or without it, and of
                the keys of `config-autoscaler`.

        Raises:
            ConfigError: If there is no such setting, or a value is none.
        """
        changed: dict[str, Any] = {}
        for name, text in values.items():
            field, read = _named(name)
            try:
                changed[field] = read(text)
            except ValueError as error:
                raise ConfigError(f"{name}: '{text}' is no value of this setting: {error}", key=name) from error
        return replace(self, **changed)


def _named(name: str) -> tuple[str, Callable[[str], Any]]:
    found = _NAMES.get(name.removeprefix(ANNOTATION))
    if found is None:
        raise ConfigError(f"Knative's scaler has no setting '{name}': there are {', '.join(sorted(_NAMES))}", key=name)
    return found


def _within(low: float, high: float, read: Callable[[str], Any] = float) -> Callable[[str], Any]:
    def checked(text: str) -> Any:
        value = read(text)
        if not low <= value <= high:
            raise ValueError(f"expected {low:g} to {high:g}")
        return value

    return checked


def _duration_s(text: str) -> float:
    """Seconds of a duration as Go writes it, such as `90s` or `1m30s`."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError("expected a duration such as 90s or 1m30s")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def _percent(text: str) -> float:
    return float(text) / 100


def _metric(text: str) -> str:
    if text not in {"concurrency", "rps"}:
        raise ValueError("expected concurrency or rps")
    return text


def _switch(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("expected true or false")
    return text == "true"


_COUNT: Final = _within(0, 2**31 - 1, int)
_HOURS: Final = _within(0, 24 * 3600, _duration_s)
_NAMES: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "metric": ("metric", _metric),
    "target": ("target", _within(0.01, 1e9)),
    "target-utilization-percentage": ("utilization", _within(0.01, 1, _percent)),
    "window": ("window_s", lambda text: int(_within(6, 3600, _duration_s)(text))),
    "panic-window-percentage": ("panic_window_percent", _within(1, 100)),
    "panic-threshold-percentage": ("panic_threshold", _within(1.1, 10, _percent)),
    "scale-down-delay": ("scale_down_delay_s", _HOURS),
    "activation-scale": ("activation_scale", _COUNT),
    "min-scale": ("least", _COUNT),
    "max-scale": ("most", _COUNT),
    "initial-scale": ("initial_scale", _COUNT),
    "target-burst-capacity": ("target_burst_capacity", _within(-1, 1e9)),
    "scale-to-zero-pod-retention-period": ("retention_s", _HOURS),
    "max-scale-up-rate": ("max_scale_up_rate", _within(1.0001, 1e9)),
    "max-scale-down-rate": ("max_scale_down_rate", _within(1.0001, 1e9)),
    "enable-scale-to-zero": ("scale_to_zero", _switch),
    "scale-to-zero-grace-period": ("grace_s", _HOURS),
}
