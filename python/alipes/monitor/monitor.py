"""`with ServerMonitor(...)`: what servers did while a block ran, as rows in a file."""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from alipes.errors import MonitorError
from alipes.monitor.board import Board
from alipes.monitor.columns import chosen
from alipes.monitor.judge import Tally, Verdict
from alipes.monitor.ledger import Row
from alipes.monitor.pipeline import Pipeline, PipelineProcess
from alipes.monitor.prometheus import samples
from alipes.monitor.servers import LATEST, Place, agreed, involved, page, place
from alipes.monitor.tracked import tracked_lines
from alipes.monitor.watcher import Watcher

if TYPE_CHECKING:
    from alipes.client import Tls
    from alipes.monitor.screen import Screen

__all__ = ["ServerMonitor"]

MAX_WAITING_ROWS: Final = 100_000
"""Most rows that wait for an iterator; the oldest are dropped first, since most scripts read the file."""

_log = logging.getLogger("alipes.monitor")


class ServerMonitor(PipelineProcess):
    """Watches servers from a process of its own and writes a row for each model and interval in which it executed.

    A context manager: the first look at the servers is before the block begins, the last one after it. Iterate over it
    for rows as they come. A server that stops answering is logged and still polled; one that never answers, and
    whatever else goes wrong, is raised where the block ends.

    Attributes:
        ips: The servers.
        models: The models that are watched.
        versions: The version of each.
        max_request_rate: Looks a second at each server; it may be set until the monitor starts.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
        self,
        model_name: str,
        ips: str | Sequence[str],
        filename: str | os.PathLike[str],
        model_version: int = LATEST,
        max_request_rate: float = 10,
        name: str = "monitor",
        rate: float | None = None,
        join_timeout: float = 10,
        *,
        columns: Sequence[str] | Literal["all"] = (),
        http_port: int = 8000,
        metrics_port: int = 8002,
        grpc_port: int = 8001,
        include_ensemble: bool = False,
        live: bool = False,
        tls: Tls | None = None,
    ) -> None:
        """Asks the servers which models answer for this one.

        Args:
            model_name: The model. For an ensemble those of its steps are watched.
            ips: The servers: names or addresses, each with the port of its metrics or without.
            filename: Where rows are written, as comma-separated values.
            model_version: Version of the model; -1 for the latest.
            max_request_rate: Looks a second at each server.
            name: Name of the monitor.
            rate: Taken for the sake of older scripts; `max_request_rate` is what counts.
            join_timeout: Seconds that the process has to end by itself.
            columns: Further columns, or `all`. Those of GPUs are there where a server has one.
            http_port: Where servers are asked about models.
            metrics_port: Where their counters are.
            grpc_port: Where servers without HTTP are asked about models.
            include_ensemble: Whether an ensemble has rows of its own.
            live: Whether to show what happens while it does, in the terminal or the notebook.
            tls: How connections to all of them are encrypted; plain without it.

        Raises:
            MonitorError: If a server has no such model, or the servers have different ones; it is a `ValueError`.
            TransportError: If a server does not answer.
        """
        del rate
        super().__init__(name, None, join_timeout)
        if not max_request_rate > 0:
            raise MonitorError(f"max_request_rate is {max_request_rate}: expected more than 0 looks a second")
        named = [ips] if isinstance(ips, str) else list(ips)
        if not named:
            raise MonitorError("there is no server to watch: ips is empty")
        self.filename = Path(filename)
        self.out_q = queue.Queue(MAX_WAITING_ROWS)
        self.tally = Tally()
        self._places = [place(ip, http_port, metrics_port, grpc_port, tls) for ip in named]
        self._columns = chosen(columns)
        keys = agreed(
            {one.ip: involved(one, model_name, model_version, itself=include_ensemble) for one in self._places}
        )
        self.ips = named
        self.models = [model for model, _ in keys]
        self.versions = [version for _, version in keys]
        self.max_request_rate = max_request_rate
        self._board = Board(time.time())
        self._screen = self._opened() if live else None
        self._begun = threading.Event()
        self._reader: threading.Thread | None = None
        self._error: str | None = None
        self._trace = ""
        self._silent: list[str] = []
        self._forced = False

    def start(self) -> None:
        """Starts the process; returns once it has looked at every server.

        Raises:
            MonitorError: If it cannot write its file.
        """
        self._process = Watcher(self._job())
        self._reader = threading.Thread(target=self._read, name=f"{self.name}-reader", daemon=True)
        self._reader.start()
        self._begun.wait()
        if self._error is not None:
            self._finish()
            self.close()
            self._fail()
        if self._screen is not None:
            self._screen.__enter__()

    def stop(self) -> None:
        """Lets it look for the last time and end.

        Raises:
            MonitorError: If something went wrong meanwhile, or a server has never answered.
        """
        if self._process is None or self._reader is None:
            return
        self._finish()
        if self._error is not None:
            self._fail()
        if self._silent:
            raise MonitorError(
                f"the metrics of {', '.join(self._silent)} have never answered: none of them are recorded"
            )

    def verdict(self) -> Verdict:
        """What held the work up so far."""
        return self.tally.verdict()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it. What went wrong with it is only logged where the block itself has raised something."""
        try:
            self.stop()
        except MonitorError as problem:
            if error is None:
                raise
            _log.error("%s", problem)
        finally:
            self.close()

    def terminate(self) -> None:
        """Ends the process at once. What it would have written last is lost, which is no error then."""
        self._forced = True
        super().terminate()

    def kill(self) -> None:
        """The same with SIGKILL."""
        self._forced = True
        super().kill()

    def parse_for_ip(self, ip: str, http: Any, tracker: dict[str, dict[str, int]]) -> list[str]:
        """What a server did since the last call, as lines of the record without their ends.

        Args:
            ip: One of `ips`.
            http: What asks for its metrics: `http.request("GET", url).data` are their bytes, as of a
                `urllib3.PoolManager`. `None` asks without help.
            tracker: Counters at the last call, by model; an empty dictionary for each of `models` at first.

        Raises:
            MonitorError: If the server is none of them, the tracker lacks a model, or the metrics lack one.
            TransportError: If the server does not answer.
        """
        place = next((one for one in self._places if one.ip == ip), None)
        if place is None:
            raise MonitorError(f"{ip} is not one of the monitored servers: {', '.join(self.ips)}")
        found = page(place) if http is None else samples(_body(http, place))
        return tracked_lines(ip, list(zip(self.models, self.versions, strict=True)), found, tracker, time.time())

    def __iter__(self) -> Iterator[Row]:
        """Rows as they come, until the monitor stops."""
        return self

    def __next__(self) -> Row:
        """The next row."""
        row = self.out_q.get()
        if isinstance(row, Row):
            return row
        self.out_q.put(row)  # for another iterator
        if self._error is not None:
            self._fail()
        raise StopIteration

    def __rshift__(self, other: object) -> Pipeline:
        """A monitor passes rows to iterators, not to processes.

        Raises:
            TypeError: Always.
        """
        raise TypeError("a ServerMonitor cannot be part of a pipeline: iterate over it for its rows, or read its file")

    def _job(self) -> dict[str, object]:
        return {
            "places": [_document(one) for one in self._places],
            "keys": list(zip(self.models, self.versions, strict=True)),
            "columns": [column.name for column in self._columns],
            "filename": str(self.filename.absolute()),
            "interval_s": 1 / self.max_request_rate,
        }

    def _finish(self) -> None:
        try:
            super().stop()
        finally:
            if self._reader is not None:
                self._reader.join()
                self._reader = None
            if self._screen is not None:
                self._screen.__exit__(None, None, None)

    def _opened(self) -> Screen:
        from alipes.monitor.screen import Screen  # imports rich, which a script without a screen never needs

        return Screen(self._board, self.verdict)

    def _fail(self) -> NoReturn:
        problem = MonitorError(f"the monitor {self.name} has failed: {self._error}")
        problem.add_note(self._trace)
        raise problem

    def _read(self) -> None:
        """Takes what the process says, until it says no more."""
        ended = False
        for line in self._process.lines():
            event = json.loads(line)
            ended = ended or "ended" in event or "error" in event
            self._handle(event)
        if not ended and not self._forced:
            self._error = "its process has ended before it was stopped"
        self._begun.set()
        self._put(None)

    def _handle(self, event: dict[str, Any]) -> None:
        if "rows" in event:
            rows = [Row(*fields) for fields in event["rows"]]
            self._board.add(rows)
            for row in rows:
                self.tally.add(row)
                self._put(row)
        elif "trouble" in event:
            if event["trouble"] is None:
                _log.warning("the monitor %s: %s answers again", self.name, event["ip"])
            else:
                _log.warning("the monitor %s: %s; the monitor keeps trying", self.name, event["trouble"])
        elif "error" in event:
            self._error, self._trace = event["error"], event["trace"]
            _log.error("the monitor %s has failed: %s", self.name, self._error)
        elif "ended" in event:
            self._silent = event["ended"]
        else:
            self._begun.set()

    def _put(self, row: Row | None) -> None:
        while True:
            try:
                self.out_q.put_nowait(row)
                return
            except queue.Full:
                self.out_q.get_nowait()


def _body(http: Any, place: Place) -> str:
    """The metrics of a server, as the caller's own client gets them."""
    data: bytes = http.request("GET", f"http://{place.metrics}/metrics").data
    return data.decode(errors="replace")


def _document(place: Place) -> dict[str, object]:
    """A server, as a document for the process."""
    document = asdict(place)
    if document["tls"] is not None:
        document["tls"] = {name: None if value is None else os.fspath(value) for name, value in document["tls"].items()}
    return document
