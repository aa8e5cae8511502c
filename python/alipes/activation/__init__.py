"""A server that runs while somebody asks for it: its listening sockets are held, and a connection starts it."""

from __future__ import annotations

from alipes.activation.activator import Activator
from alipes.activation.listening import HeldSocket, hold_sockets

__all__ = ["Activator", "HeldSocket", "hold_sockets"]
