"""Several objects are several instances, each on a thread of the script."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from alipes.attached import InferenceRequest, InferenceResponse
from support.attached import answer, attach, attached, first_input, numbers
from support.waiting import TIMEOUT_S

REQUESTS = 40


def test_instances_execute_side_by_side() -> None:
    # Nobody passes before all three are there: one thread, or one after the other, would never answer.
    meeting = threading.Barrier(3, timeout=TIMEOUT_S)
    threads: set[str] = set()

    def execute(requests: list[InferenceRequest]) -> list[InferenceResponse]:
        threads.add(threading.current_thread().name)
        meeting.wait()
        return [answer(first_input(request)) for request in requests]

    model = attached("meets", execute, execute, execute)
    with attach(model) as attachment, attachment.client() as client, ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda n: client.infer("meets", numbers(n))[0], range(3))) == [0, 1, 2]
    assert threads == {f"alipes-meets_0_{index}" for index in range(3)}


def test_an_instance_executes_one_batch_at_a_time() -> None:
    inside = threading.Semaphore(1)
    together: list[bool] = []

    def execute(requests: list[InferenceRequest]) -> list[InferenceResponse]:
        alone = inside.acquire(blocking=False)
        together.append(not alone)
        time.sleep(0.002)  # another thread would come in meanwhile
        if alone:
            inside.release()
        return [answer(first_input(request)) for request in requests]

    with attach(attached("one", execute)) as attachment, attachment.client() as client, ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(lambda n: client.infer("one", numbers(n)), range(REQUESTS)))) == REQUESTS
    assert together == [False] * REQUESTS


def test_each_instance_is_an_object_of_its_own() -> None:
    class Instance:
        """Its two instances meet, so that either has one request."""

        meeting = threading.Barrier(2, timeout=TIMEOUT_S)

        def __init__(self) -> None:
            self.name, self.threads = "", set[int]()

        def initialize(self, args: dict[str, str]) -> None:
            self.name = args["model_instance_name"]
            self.threads.add(threading.get_ident())

        def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
            self.threads.add(threading.get_ident())
            self.meeting.wait()
            return [answer(first_input(request)) for request in requests]

        def finalize(self) -> None:
            self.threads.add(threading.get_ident())

    both = [Instance(), Instance()]
    with attach(attached("own", *both)) as attachment, attachment.client() as client, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: client.infer("own", numbers(n)), range(2)))
    assert [one.name for one in both] == ["own_0_0", "own_0_1"]
    # Initialized, executed and finalized on one thread, which is not the other's: devices are bound to threads.
    assert [len(one.threads) for one in both] == [1, 1]
    assert both[0].threads != both[1].threads
