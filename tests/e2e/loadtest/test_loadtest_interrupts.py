"""Ctrl-C while a window is read: what it has measured is in the report."""

from __future__ import annotations

import signal
from collections.abc import ItemsView
from typing import Any

import numpy as np
import pytest
from alipes.loadtest import Check, Closed, Interrupted, Measuring, Posts, run
from support.scripted_latency import ScriptedLatency


class InterruptedWhenRead(dict[str, Any]):
    """Expected outputs; whoever reads them while it checks a window is interrupted once."""

    interrupts = 1

    def items(self) -> ItemsView[str, Any]:
        if self.interrupts:
            self.interrupts -= 1
            signal.raise_signal(signal.SIGINT)
        return super().items()


@pytest.mark.parametrize("measured", [{"windows": 1000, "window_s": 0.05, "within": 1e-9}, {"count": 1_000_000}])
def test_a_window_that_is_read_is_read_to_its_end(measured: dict[str, Any]) -> None:
    expected = InterruptedWhenRead({"": np.array([[b"other"]], np.object_)})
    measuring = Measuring(warm_up_s=0, check=Check(expected, samples=5), error_budget=1, **measured)
    before = signal.getsignal(signal.SIGINT)
    with ScriptedLatency() as server, pytest.raises(Interrupted) as found:
        run(Posts("/", [b"1"]), Closed(2), address=server.address, measuring=measuring)
    (level,) = found.value.result.levels
    assert (expected.interrupts, len(level.windows)) == (0, 1)
    assert level.windows[0].answers > 0
    assert level.windows[0].checked > 0
    assert signal.getsignal(signal.SIGINT) is before
