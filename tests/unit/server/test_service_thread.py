"""Starting and stopping a thread of the server."""

from __future__ import annotations

import threading

from alipes.server.service_thread import ServiceThread

TIMEOUT_S = 30


class Loop(ServiceThread):
    def __init__(self) -> None:
        super().__init__("alipes-loop")
        self.running = threading.Event()
        self.hold = threading.Event()
        self.name = ""

    def _run(self) -> None:
        self.name = threading.current_thread().name
        self.running.set()
        self._stopping.wait()
        self.hold.wait()


def test_stop_ends_the_loop() -> None:
    loop = Loop()
    loop.hold.set()
    loop.start()
    assert loop.running.wait(TIMEOUT_S)
    assert loop.stop(TIMEOUT_S)
    assert loop.name == "alipes-loop"


def test_stop_reports_a_loop_that_hangs() -> None:
    loop = Loop()
    loop.start()
    assert not loop.stop(0.01)
    loop.hold.set()
    assert loop.stop(TIMEOUT_S)


def test_stop_of_a_thread_that_never_started_succeeds() -> None:
    assert Loop().stop(TIMEOUT_S)
