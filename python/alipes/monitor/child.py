"""The process behind a monitor: `python -m alipes.monitor.child`.

Its standard input has one line that says what to watch, and a second one, or its end, that says to stop. To its
standard output it writes a line of JSON for each thing that happens. A process of its own keeps the script's
interpreter free; started anew rather than forked, it inherits none of the script's threads and reads none of its code.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from alipes.monitor.columns import EXTRAS
from alipes.monitor.ledger import Row
from alipes.monitor.recorder import Listener, Recorder
from alipes.monitor.servers import Place

__all__ = ["main"]


def main() -> int:
    """Watches until it is stopped; prints the reason and returns 1 if that failed."""
    try:
        _watch(json.loads(sys.stdin.readline()))
    except Exception as error:
        import traceback

        _print_event(error=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
        return 1
    return 0


def _watch(job: dict[str, Any]) -> None:
    stop = threading.Event()
    threading.Thread(target=_stop_at_a_word, args=(stop,), daemon=True).start()
    path = job["filename"]
    with nullcontext() if path is None else Path(path).open("w", encoding="utf-8", newline="") as file:
        recorder = Recorder(
            [_place(place) for place in job["places"]],
            None if job["keys"] is None else [(model, version) for model, version in job["keys"]],
            [EXTRAS[name] for name in job["columns"]],
            file,
            job["interval_s"],
            Listener(rows=_print_rows, trouble=lambda place, reason: _print_event(trouble=reason, ip=place.ip)),
        )
        recorder.begin()
        _print_event(begun=[column.name for column in recorder.columns])
        recorder.run(stop)
        _print_event(ended=[place.ip for place in recorder.silent])


def _place(document: dict[str, Any]) -> Place:
    if (tls := document.pop("tls")) is None:
        return Place(**document)
    from alipes.client import Tls

    return Place(**document, tls=Tls(**tls))


def _stop_at_a_word(stop: threading.Event) -> None:
    sys.stdin.readline()
    stop.set()


def _print_rows(rows: Sequence[Row]) -> None:
    _print_event(
        rows=[[row.timestamp, row.ip, row.model, row.version, row.count, row.durations_us, row.extras] for row in rows]
    )


_speaking = threading.Lock()


def _print_event(**what: object) -> None:
    with _speaking:
        print(json.dumps(what), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
