"""A load that writes down the fate of every request: for what happens while servers break."""

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bench.load.tool import LoadFailed
from bench.work import Work

#: A request without an answer is given up after this time.
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Entry:
    """What became of a request."""

    #: When its answer was complete, or given up, by the monotonic clock.
    ended_s: float
    #: HTTP status; None where no answer came.
    status: int | None
    #: The answer's numbers where it succeeded, else empty.
    values: tuple[float, ...]
    #: The error's text, or why there was no answer.
    text: str

    @property
    def succeeded(self) -> bool:
        """Whether the model answered."""
        return self.status == http.client.OK


class Ledger:
    """Connections that post a request over and over for as long as the `with` block runs.

    Threads of this process, since nothing here needs the speed of a load tool.
    """

    def __init__(self, port: int, work: Work, connections: int) -> None:
        """Remembers what to send; nothing is sent yet."""
        self._port = port
        self._work = work
        self._threads = [threading.Thread(target=self._post) for _ in range(connections)]
        self._ended = threading.Event()
        self._grown = threading.Condition()
        self._entries: list[Entry] = []

    @property
    def entries(self) -> list[Entry]:
        """The requests that have ended so far, in the order of their ends."""
        with self._grown:
            return list(self._entries)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, wanted: Callable[[Entry], bool], timeout_s: float = TIMEOUT_S) -> Entry:
        """The first entry that is wanted, once there is one.

        Raises:
            LoadFailed: If there is none in time.
        """
        with self._grown:
            self._grown.wait_for(lambda: any(map(wanted, self._entries)), timeout_s)
            found = next(filter(wanted, self._entries), None)
            if found is None:
                seen = {(entry.status, entry.text) for entry in self._entries}
                raise LoadFailed(f"no such answer within {timeout_s:.0f} s, but {len(self._entries)} others: {seen}")
            return found

    def _post(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        while not self._ended.is_set():
            entry = self._ask(connection)
            with self._grown:
                self._entries.append(entry)
                self._grown.notify_all()
        connection.close()

    def _ask(self, connection: http.client.HTTPConnection) -> Entry:
        try:
            connection.request("POST", self._work.path, body=self._work.body, headers=self._work.headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            # The next request opens the connection anew.
            connection.close()
            return Entry(time.monotonic(), None, (), repr(error))
        ended_s = time.monotonic()
        if response.status != http.client.OK:
            return Entry(ended_s, response.status, (), body.decode(errors="replace"))
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Entry(ended_s, response.status, tuple(self._work.values(body, headers).tolist()), "")
