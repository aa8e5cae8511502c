"""Property tests have no deadline: the speed of the machine is not under test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("alipes", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("alipes")
