"""How many threads an execution takes: one, and all of the instance's for batches that they were seen to answer sooner.

A batch that several threads share is ready when the last of them is. Where other programs use the cores, that one waits
for milliseconds to do what takes microseconds. How busy a machine is when a model loads does not tell how busy it will
be. So the choice is made on the batches themselves, and made again where it turns out to be wrong. Executions on one
thread are measured by the processor time of that thread, which is the work of a batch, however long others held it up:
with the time by the clock, a model of 0.1 ms would look like one of 10 ms there, and like one that threads shorten.

Three layers of 1024 by 1024 in TorchScript, 4 rows, two cores and eight programs that want them, in turns: 1.2 ms on
one thread, 52 ms on two, and 4 ms on two that sleep while they wait.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

    from alipes.worker.frameworks.opened import OpenedModel, Opening

__all__ = ["SizeTrial", "ThreadChoice", "run_of"]

_WORTH_S: Final = 0.01
"""The least work of an execution, in seconds of one thread, that is tried on several: about what a thread may wait for
a core."""

_GAIN: Final = 0.75
"""What of the processor time of one thread several have to stay below, by the clock."""

_SAMPLES: Final = 3
"""Executions whose median is compared: one that something else held up decides nothing."""

_QUICK_S: Final = _WORTH_S / 10
"""Executions of less work than this are far from worth a trial."""

_UNMEASURED: Final = 15
"""Executions of about the same size that are not measured after a quick one. To measure each costs a model of 70 µs
(three layers in TorchScript, 4 rows, beside other load) 11 % of its time, and this 3 %."""

_PAUSE: Final = 512
"""Executions on one thread between two trials of several, so that trials cost a percent where they fail."""

Run = Callable[[Mapping[str, "np.ndarray"]], Mapping[str, Any]]


def run_of(model: OpenedModel, opening: Opening) -> Run:
    """What runs the batches of a model: its own `run`, on as many threads as serve it best where that is open."""
    if not (opening.adapts_threads and model.adapts_threads):
        return model.run
    model.set_threads(1)  # for what is not chosen by time: steps of models with a state
    return ThreadChoice(model, opening.threads).run


class ThreadChoice:
    """Runs batches on one thread or on all, by the size of their inputs."""

    def __init__(
        self,
        model: OpenedModel,
        most: int,
        clock: Callable[[], float] = time.perf_counter,
        work: Callable[[], float] = time.thread_time,
    ) -> None:
        """Takes a model that adapts its threads, how many it may have, and what tells the time, in seconds.

        Args:
            model: The model.
            most: Most threads.
            clock: The time.
            work: Processor time of this thread.
        """
        self._model = model
        self._most = most
        self._clock, self._work = clock, work
        self._threads = 1
        self._trials: defaultdict[int, SizeTrial] = defaultdict(SizeTrial)

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """Runs one batch; one that fails is not counted."""
        elements = 0
        for array in inputs.values():
            elements += array.size
        trial = self._trials[elements.bit_length()]
        if trial.unmeasured:
            trial.unmeasured -= 1
            if self._threads != 1:
                self._set(1)
            return self._model.run(inputs)
        self._set(self._most if trial.takes_all else 1)
        time_of = self._clock if trial.takes_all else self._work
        begin = time_of()
        found = self._model.run(inputs)
        trial.record(time_of() - begin)
        return found

    def _set(self, threads: int) -> None:
        if threads != self._threads:
            self._model.set_threads(threads)
            self._threads = threads


class SizeTrial:
    """Which is quicker for batches of about one size.

    Attributes:
        takes_all: Whether the next execution takes all threads.
        unmeasured: Next executions that take one thread, and are not measured.
    """

    def __init__(self) -> None:
        """Begins with one thread."""
        self.takes_all = False
        self.unmeasured = 0
        self._one: deque[float] = deque(maxlen=_SAMPLES)
        self._all: deque[float] = deque(maxlen=_SAMPLES)
        self._pause = 0

    def record(self, seconds: float) -> None:
        """Takes the seconds of the execution that `takes_all` said the threads of: its time, or one thread's work."""
        times = self._all if self.takes_all else self._one
        times.append(seconds)
        self._pause = max(0, self._pause - 1)
        if len(times) < _SAMPLES:
            return
        if self.takes_all:
            if median(self._all) > _GAIN * median(self._one):
                self.takes_all, self._pause = False, _PAUSE
                self._one.clear()
        elif seconds < _QUICK_S:
            self.unmeasured = _UNMEASURED
        elif seconds >= _WORTH_S and not self._pause and median(self._one) >= _WORTH_S:
            self.takes_all = True
            self._all.clear()
