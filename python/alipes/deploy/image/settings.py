"""How an image runs: as whom, on which ports, by which command, and how it is stopped."""

from __future__ import annotations

from typing import Final

__all__ = ["ENTRYPOINT", "MODELS", "PORTS", "STOP_SIGNAL", "USER"]

USER: Final = 10001
"""A user that no system has: above those that distributions give out."""

PORTS: Final = (8000, 8001, 8002)
"""HTTP, gRPC and metrics: the defaults of the flags."""

MODELS: Final = "/models"
"""Where models lie in an image, or are mounted."""

ENTRYPOINT: Final = ("alipes", "serve", MODELS)
"""What runs; arguments of a container are further flags."""

STOP_SIGNAL: Final = "SIGTERM"
"""What has the server finish what is in."""
