"""A JSON document that is posted, and the numbers that must come back: for servers that have no protocol in common."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bench.paths import WORK
from bench.work import ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE, WrongAnswer

TIMEOUT_S = 30.0


def _whole(answer: Any) -> Any:
    return answer


def _first_output(answer: Any) -> Any:
    return answer["outputs"][0]["data"]


@dataclass(frozen=True)
class Document:
    """One request of a row, as one of its servers wants it."""

    #: Names the file that holds it.
    name: str
    path: str
    content: object = field(hash=False)
    #: The numbers of the right answer, without its nesting.
    expected: tuple[float, ...] = field(hash=False)
    #: Where the numbers are in the answer's document.
    numbers: Callable[[Any], Any] = _whole

    @property
    def headers(self) -> dict[str, str]:
        """Request headers beside host and length."""
        return {"Content-Type": "application/json"}

    @cached_property
    def body(self) -> bytes:
        """The request's body."""
        return json.dumps(self.content).encode()

    @cached_property
    def body_file(self) -> Path:
        """A file with the body, for the load tool."""
        file = WORK / "bodies" / f"{self.name}.request"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self.body)
        return file

    def is_answered(self, port: int) -> bool:
        """Whether a server that starts answers already; whatever it answers with status 200 must be right.

        Raises:
            WrongAnswer: If it is not.
        """
        try:
            status, body = self._post(port)
        except (OSError, http.client.HTTPException):
            return False
        if status != http.client.OK:
            return False
        self.check_body(body)
        return True

    def check(self, port: int) -> None:
        """Posts it once.

        Raises:
            WrongAnswer: If there is no answer, or another one.
        """
        try:
            status, body = self._post(port)
        except (OSError, http.client.HTTPException) as error:
            raise WrongAnswer(f"{self.name}: no answer: {error!r}") from error
        if status != http.client.OK:
            raise WrongAnswer(f"{self.name}: status {status}: {body[:200]!r}")
        self.check_body(body)

    def check_body(self, body: bytes) -> None:
        """Compares an answer with the right one.

        Raises:
            WrongAnswer: If it cannot be read or has other numbers.
        """
        try:
            found = np.asarray(self.numbers(json.loads(body)), np.float64).ravel()
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise WrongAnswer(f"{self.name}: cannot read the answer {body[:200]!r}: {error!r}") from error
        expected = np.asarray(self.expected, np.float64)
        close = found.shape == expected.shape and np.allclose(
            found, expected, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE
        )
        if not close:
            raise WrongAnswer(f"{self.name}: expected {expected[:4]}…, got {found[:4]}…")

    def _post(self, port: int) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        try:
            connection.request("POST", self.path, body=self.body, headers=self.headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def v2_document(name: str, model: str, tensor: str, row: np.ndarray, expected: np.ndarray) -> Document:
    """A row as the V2 protocol has it in JSON, for a model with one input and one output."""
    place = {"name": tensor, "datatype": "FP32", "shape": list(row.shape), "data": row.ravel().tolist()}
    numbers = tuple(float(value) for value in expected.ravel())
    return Document(name, f"/v2/models/{model}/infer", {"inputs": [place]}, numbers, _first_output)
