"""Clients of several servers under load for long, while servers end and come back again and again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, StreamClient
from support.models import add_model, times
from support.server import ServerProcess
from support.switch import Switch
from support.waiting import until

pytestmark = [pytest.mark.proof, pytest.mark.slow("three kinds of clients under load, with thirty ends of servers")]

Serve = Callable[..., ServerProcess]

ROUNDS = 30
BETWEEN = 60
"""Answers of each client between two ends."""

ROW = np.ones((1, 2), np.float32)


def test_no_call_is_lost_while_servers_end_and_come_back(repository: Path, serve: Serve) -> None:
    add_model(repository, "double", times(columns="columns"))
    servers = [serve(repository) for _ in range(3)]
    stop = threading.Event()
    answered = [0, 0, 0]
    failed: list[BaseException] = []

    with ExitStack() as stack:
        switches = [stack.enter_context(Switch(server.grpc)) for server in servers]
        addresses = [switch.address for switch in switches]

        def wait() -> None:
            with Client(addresses) as client:
                while not stop.is_set():
                    number = answered[0]
                    assert client.infer("double", ROW * number)[0, 0] == 2 * number
                    answered[0] += 1

        async def work() -> None:
            async with AsyncClient(addresses) as client:
                while not stop.is_set():
                    answers = await asyncio.gather(*(client.infer("double", ROW * number) for number in range(8)))
                    assert [answer[0, 0] for answer in answers] == [2.0 * number for number in range(8)]
                    answered[1] += 8

        def stream() -> None:
            with StreamClient(addresses, "double") as client:
                while not stop.is_set():
                    futures = [client.submit(ROW * number) for number in range(8)]
                    assert [future.result()[0, 0] for future in futures] == [2.0 * number for number in range(8)]
                    answered[2] += 8

        def run(target: Callable[[], object]) -> None:
            try:
                target()
            except BaseException as error:
                failed.append(error)

        targets = (wait, lambda: asyncio.run(work()), stream)
        threads = [threading.Thread(target=run, args=(target,)) for target in targets]
        for thread in threads:
            thread.start()
        try:
            for number in range(ROUNDS):
                server, switch = servers[number % 3], switches[number % 3]
                switch.lead(None)
                wanted = [count + BETWEEN for count in answered]
                until(lambda wanted=wanted: failed or all(map(int.__ge__, answered, wanted)))  # type: ignore[misc]
                switch.lead(server.grpc)
                most = _executed(server) + BETWEEN
                until(lambda server=server, most=most: failed or _executed(server) >= most)  # type: ignore[misc]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert failed == []


def _executed(server: ServerProcess) -> int:
    with Client(server.grpc) as client:
        return int(client.statistics("double")[0]["inference_stats"]["success"]["count"])
