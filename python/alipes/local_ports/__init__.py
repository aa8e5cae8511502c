"""The local port map: from the port that a script names to the one at which a server that it started listens.

A script names `localhost:8001`, the usual port of servers. If another process uses that port, `serve` starts its server
on a free one and publishes both here; clients and monitors resolve addresses before they connect. The map reaches every
process that the script starts while the server runs: forked ones with its memory, others through a variable of the
environment.
"""

from __future__ import annotations

from alipes.local_ports.mapping import PortMapping, is_ours, reserved_ports, resolve

__all__ = ["PortMapping", "is_ours", "reserved_ports", "resolve"]
