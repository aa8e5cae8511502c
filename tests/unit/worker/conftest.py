"""A link that answers from a list, in place of a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from alipes._core import TritonModelException
from alipes.worker.current import current


class Link:
    """Records calls and log lines; answers calls from `answers`, where a text is raised as an exception."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[dict[str, Any] | str] = []
        self.lines: list[tuple[int, str, int, str]] = []
        self.verbose = False

    def call(self, name: str, question: str) -> str:
        self.calls.append((name, json.loads(question)))
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, str):
            raise TritonModelException(answer)
        return json.dumps(answer)

    def log(self, level: int, file: str, line: int, text: str) -> None:
        self.lines.append((level, file, line, text))

    def is_verbose(self) -> bool:
        return self.verbose


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link()
    current.link = made  # type: ignore[assignment]
    yield made
    current.link = None
