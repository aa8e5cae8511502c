"""What a fault is given, and what all faults share."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from support.server import ServerProcess

# Longest wait for a helper of a fault: more than any client waits.
_END_S = 150.0


@dataclass
class Scene:
    """Where faults happen.

    Attributes:
        server: The server.
        repository: Its models.
        dice: Decide how a fault happens.
        over: Set when the soak ends.
        helpers: What goes on beside the faults.
    """

    server: ServerProcess
    repository: Path
    dice: random.Random
    over: threading.Event = field(default_factory=threading.Event)
    helpers: list[threading.Thread] = field(default_factory=list)

    def pause(self, longest_s: float) -> bool:
        """Waits for a while; whether the soak ends."""
        return self.over.wait(self.dice.uniform(0, longest_s))

    def beside(self, work: Callable[[], object]) -> None:
        """Does something while further faults happen."""
        self.helpers = [helper for helper in self.helpers if helper.is_alive()]
        helper = threading.Thread(target=work, daemon=True)
        helper.start()
        self.helpers.append(helper)

    def wait(self) -> bool:
        """Waits for all that goes on; whether it ended."""
        for helper in self.helpers:
            helper.join(_END_S)
        return not any(helper.is_alive() for helper in self.helpers)


Fault = Callable[[Scene], object]
