"""What became of requests: how many were answered and refused, and what must not have happened."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tritonclient.utils import InferenceServerException

from support.endpoints import Refusal
from support.sequences import Refused
from support.soak.models import MAY_REFUSE

# Texts beyond this many say nothing new.
_MOST_FAULTS: Final = 50
_LONGEST: Final = 500

_MODELS: Final = "|".join(MAY_REFUSE)
# What a request may be refused with when a worker is killed, or a model is unloaded.
_ALLOWED: Final = re.compile(
    rf"(in ensemble '{MAY_REFUSE[1]}', )?"
    rf"(worker process of '({_MODELS})_0_\d' .*"
    rf"|Model '({_MODELS})' is not ready.*"
    rf"|Request for unknown model: '({_MODELS})' .*)",
    re.DOTALL,
)


class Tally:
    """Counts that any thread may add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers = self._refusals = 0
        self._wrong: list[str] = []

    def answered(self, what: str, *, right: bool, answer: object = "") -> None:
        """A request got an answer."""
        with self._lock:
            self._answers += 1
        if not right:
            self.wrong(f"a wrong answer of {what}: {answer}")

    def refused(self, what: str, text: str) -> None:
        """A request got an error."""
        with self._lock:
            self._refusals += 1
        if not _ALLOWED.fullmatch(text):
            self.wrong(f"an unexpected error of {what}: {text}")

    def wrong(self, text: str) -> None:
        """Something that must not happen."""
        with self._lock:
            if len(self._wrong) < _MOST_FAULTS:
                self._wrong.append(text[:_LONGEST])

    @contextmanager
    def errors_of(self, what: str) -> Iterator[None]:
        """Counts an error that the server answers with, and ends the block."""
        try:
            yield
        except Refusal as refusal:
            self.refused(what, refusal.text)
        except Refused as refusal:
            self.refused(what, str(refusal))
        except InferenceServerException as error:
            self.refused(what, str(error.message()))

    def take(self) -> tuple[int, int, list[str]]:
        """Answers, refusals and what was wrong since the last call."""
        with self._lock:
            counts = self._answers, self._refusals, self._wrong
            self._answers, self._refusals, self._wrong = 0, 0, []
        return counts
