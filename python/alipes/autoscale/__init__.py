"""A recorded day of requests, replayed against scalers: Knative's own decisions, and a scaler that knows start-up time.

Everything here is a pure function of its arguments: no clock, no chance, no network. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = [
    "DayFigures",
    "KnativeDecision",
    "KnativeScaler",
    "KnativeSettings",
    "Replica",
    "Scaler",
    "ServiceCurve",
    "ServiceState",
    "SimulatedDay",
    "Sizing",
    "StartupAwareScaler",
    "StartupAwareSettings",
    "curve_of",
    "read_curve",
    "read_demand",
    "simulate",
    "size",
]

if TYPE_CHECKING:
    from alipes.autoscale.curve import ServiceCurve
    from alipes.autoscale.demand import read_demand
    from alipes.autoscale.figures import DayFigures
    from alipes.autoscale.knative import KnativeDecision, KnativeScaler
    from alipes.autoscale.knative_settings import KnativeSettings
    from alipes.autoscale.scaler import Scaler, ServiceState
    from alipes.autoscale.simulation import Replica, SimulatedDay, simulate
    from alipes.autoscale.sizing import Sizing, size
    from alipes.autoscale.startup_aware import StartupAwareScaler, StartupAwareSettings
    from alipes.autoscale.tuned_curve import curve_of, read_curve

_HOMES = {
    "DayFigures": "alipes.autoscale.figures",
    "KnativeDecision": "alipes.autoscale.knative",
    "KnativeScaler": "alipes.autoscale.knative",
    "KnativeSettings": "alipes.autoscale.knative_settings",
    "Replica": "alipes.autoscale.simulation",
    "Scaler": "alipes.autoscale.scaler",
    "ServiceCurve": "alipes.autoscale.curve",
    "ServiceState": "alipes.autoscale.scaler",
    "SimulatedDay": "alipes.autoscale.simulation",
    "Sizing": "alipes.autoscale.sizing",
    "StartupAwareScaler": "alipes.autoscale.startup_aware",
    "StartupAwareSettings": "alipes.autoscale.startup_aware",
    "curve_of": "alipes.autoscale.tuned_curve",
    "read_curve": "alipes.autoscale.tuned_curve",
    "read_demand": "alipes.autoscale.demand",
    "simulate": "alipes.autoscale.simulation",
    "size": "alipes.autoscale.sizing",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
