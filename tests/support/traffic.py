"""Callers that send requests to one model again and again, and record the answers."""

from __future__ import annotations

import http.client
import json
import threading
from contextlib import closing
from typing import Self

from support.server import ServerProcess

_TIMEOUT_S = 60.0


def answer_of(server: ServerProcess, model: str) -> float:
    """What a model of `support.models.times` answers to one row of ones."""
    with closing(http.client.HTTPConnection(server.http, timeout=_TIMEOUT_S)) as connection:
        return _ask(connection, model)


class Traffic:
    """Asks from several connections while it is entered; at least once on each before and once after the block.

    Attributes:
        by_caller: The answers of each connection, in order.
        failures: Errors in place of answers.
    """

    def __init__(self, server: ServerProcess, model: str, callers: int = 4) -> None:
        """Sends nothing yet."""
        self.by_caller: list[list[float]] = [[] for _ in range(callers)]
        self.failures: list[str] = []
        self._server = server
        self._model = model
        self._over = threading.Event()
        self._begun = threading.Semaphore(0)
        self._callers = [threading.Thread(target=self._run, args=(mine,)) for mine in self.by_caller]

    def __enter__(self) -> Self:
        """Begins, and returns once every caller has been answered."""
        for caller in self._callers:
            caller.start()
        for _ in self._callers:
            assert self._begun.acquire(timeout=_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        """Ends."""
        self._over.set()
        for caller in self._callers:
            caller.join(_TIMEOUT_S)

    @property
    def answers(self) -> list[float]:
        """Every answer."""
        return [answer for mine in self.by_caller for answer in mine]

    def _run(self, mine: list[float]) -> None:
        with closing(http.client.HTTPConnection(self._server.http, timeout=_TIMEOUT_S)) as connection:
            last = False
            while True:
                try:
                    mine.append(_ask(connection, self._model))
                except Exception as error:
                    self.failures.append(repr(error))
                self._begun.release()
                if last:
                    return
                last = self._over.is_set()


def _ask(connection: http.client.HTTPConnection, model: str) -> float:
    request = {"inputs": [{"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1, 1]}]}
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps(request))
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise AssertionError(f"{response.status}: {body!r}")
    return float(json.loads(body)["outputs"][0]["data"][0])
