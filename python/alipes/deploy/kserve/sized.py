"""A description of KServe with the sizes that a measured service curve leads to."""

from __future__ import annotations

from typing import Final

import msgspec

from alipes.autoscale.knative_settings import ANNOTATION
from alipes.autoscale.sizing import Sizing
from alipes.deploy.kserve.description import KServe
from alipes.deploy.kserve.faults import scaler_of
from alipes.errors import ConfigError

__all__ = ["sized"]

_UTILIZATION: Final = f"{ANNOTATION}target-utilization-percentage"


def sized(wanted: KServe, sizing: Sizing) -> KServe:
    """The description with the sizes in it.

    Args:
        wanted: What is described otherwise.
        sizing: The sizes.

    Raises:
        ConfigError: If the scaler does not look at requests.
    """
    predictor = wanted.predictor
    scaler = scaler_of(predictor.scaling, wanted.mode)
    if scaler not in {"kpa", "keda"}:
        raise ConfigError(
            f"'{scaler}' does not look at requests: say mode=Knative, or predictor.scaling.kind=keda",
            key="predictor.scaling",
        )
    bounds = {} if sizing.least is None else {"least": sizing.least, "most": sizing.most}
    if scaler == "keda":
        scaling = msgspec.structs.replace(
            predictor.scaling, metric="concurrency", target=max(1, round(sizing.aim)), **bounds
        )
        return msgspec.structs.replace(wanted, predictor=msgspec.structs.replace(predictor, scaling=scaling))
    scaling = msgspec.structs.replace(predictor.scaling, metric="concurrency", target=sizing.concurrency, **bounds)
    annotations = predictor.annotations | {_UTILIZATION: str(sizing.utilization_percent)}
    changed = msgspec.structs.replace(
        predictor, scaling=scaling, concurrency=sizing.concurrency, annotations=annotations
    )
    return msgspec.structs.replace(wanted, predictor=changed)
