"""The former name of `alipes.local_ports`."""

from __future__ import annotations

from alipes.local_ports import resolve

__all__ = ["resolve"]
