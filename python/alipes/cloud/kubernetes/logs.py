"""What pods write."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.refusals import NoAnswer, Refused
from alipes.cloud.kubernetes.resources import PODS, item_path

__all__ = ["LogLine", "followed", "lines_of"]

_MOST_LINES_WAITING: Final = 10_000
"""Lines that may wait for their reader; pods that write more are read more slowly."""


@dataclass(frozen=True)
class LogLine:
    """A line that a container of a pod wrote."""

    pod: str
    container: str
    text: str


def lines_of(api: Api, pods: Sequence[Document], tail: int | None) -> Iterator[LogLine]:
    """What pods have written so far, pod by pod: all, or the last lines of each container."""
    for pod, container in _containers(pods):
        yield from _lines(api, pod, container, tail, follow=False)


def followed(api: Api, pods: Sequence[Document], tail: int | None) -> Iterator[LogLine]:
    """What pods write, as they do, until all of them have ended or the iterator is closed."""
    lines: queue.Queue[LogLine | None] = queue.Queue(_MOST_LINES_WAITING)
    left = threading.Event()
    sources = list(_containers(pods))

    def read(pod: Document, container: str) -> None:
        try:
            with closing(_lines(api, pod, container, tail, follow=True)) as found:
                for line in found:
                    if left.is_set():
                        return
                    lines.put(line)
        except (NoAnswer, Refused):  # the pod is gone
            pass
        finally:
            lines.put(None)

    for pod, container in sources:
        threading.Thread(target=read, args=(pod, container), name=f"log {pod['metadata']['name']}", daemon=True).start()
    try:
        open_sources = len(sources)
        while open_sources:
            line = lines.get()
            if line is None:
                open_sources -= 1
            else:
                yield line
    finally:
        left.set()


def _containers(pods: Sequence[Document]) -> Iterator[tuple[Document, str]]:
    for pod in pods:
        for container in pod["spec"]["containers"]:
            yield pod, container["name"]


def _lines(api: Api, pod: Document, container: str, tail: int | None, *, follow: bool) -> Generator[LogLine]:
    metadata = pod["metadata"]
    path = f"{item_path(PODS, metadata['namespace'], metadata['name'])}/log"
    lines = api.lines(path, None if follow else 30.0, container=container, tailLines=tail, follow=follow)
    for line in lines:
        yield LogLine(metadata["name"], container, line)
