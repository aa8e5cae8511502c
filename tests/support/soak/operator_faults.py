"""What operators do to a server that runs."""

from __future__ import annotations

import json
import signal

from support import heavy
from support.soak.fault import Scene


def hang_up(scene: Scene) -> None:
    """Makes the server read its certificates and open its files again."""
    scene.server.signal(signal.SIGHUP)


def make_verbose(scene: Scene) -> None:
    """Makes the log verbose for a moment."""
    for level in (scene.dice.randrange(1, 3), 0):
        status, text = heavy.ask(scene.server.http, "/v2/logging", json.dumps({"log_verbose_level": level}).encode())
        assert status == 200, text
        scene.pause(0.3)


def trace(scene: Scene) -> None:
    """Traces some of a model's requests, for a moment."""
    for settings in (
        {"trace_level": ["TIMESTAMPS"], "trace_rate": "10", "trace_count": "100"},
        {"trace_level": ["OFF"]},
    ):
        status, text = heavy.ask(scene.server.http, "/v2/trace/setting", json.dumps(settings).encode())
        assert status == 200, text
        scene.pause(0.5)
