"""How quick a machine is, is no property of what is tested."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("alipes", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("alipes")
