"""Every held-out scan through every protocol, and how many were read right."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Final

from alipes.client import Client
from alipes.errors import TransportError
from alipes.quickstart.child import Addresses
from alipes.quickstart.digits import INPUT, MODEL, Digits

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TIMEOUT_S: Final = 30.0

Classify = Callable[["npt.NDArray[np.uint8]"], "npt.NDArray[np.float32]"]
"""From one scan `[8, 8]` to its probabilities `[10]`."""


@dataclass(frozen=True, slots=True)
class ProtocolResult:
    """What one protocol answered to all scans, one request each, one after the other.

    Attributes:
        probabilities: FP32 `[n, 10]`.
        right: How many of the n predictions are true.
        median_ms: Half of the requests took no longer.
    """

    protocol: str
    probabilities: npt.NDArray[np.float32]
    right: int
    median_ms: float

    @property
    def accuracy(self) -> float:
        """Share of the scans that were read right."""
        return self.right / len(self.probabilities)


def classify_all(addresses: Addresses, digits: Digits) -> list[ProtocolResult]:
    """Sends all scans as JSON, as anything that speaks HTTP can, and by our client over HTTP and over gRPC."""
    with (
        closing(HTTPConnection(addresses.http, timeout=_TIMEOUT_S)) as connection,
        Client(f"http://{addresses.http}") as http,
        Client(f"grpc://{addresses.grpc}") as grpc,
    ):
        return [
            classify_each("HTTP, JSON", lambda scan: _classify_json(connection, scan), digits),
            classify_each("HTTP, binary", lambda scan: _classify(http, scan), digits),
            classify_each("gRPC", lambda scan: _classify(grpc, scan), digits),
        ]


def json_body(scan: npt.NDArray[np.uint8]) -> bytes:
    """A request for one scan `[8, 8]`, its pixels as JSON numbers."""
    tensor = {"name": INPUT, "datatype": "FP32", "shape": [1, *scan.shape], "data": scan.tolist()}
    return json.dumps({"inputs": [tensor]}).encode()


def classify_each(protocol: str, classify: Classify, digits: Digits) -> ProtocolResult:
    """Sends all scans through one protocol, and compares the answers with what people wrote."""
    import numpy as np

    answers, seconds = [], []
    for scan in digits.scans:
        started = time.perf_counter()
        answers.append(classify(scan))
        seconds.append(time.perf_counter() - started)
    probabilities = np.stack(answers)
    right = int((probabilities.argmax(axis=1) == digits.labels).sum())
    return ProtocolResult(protocol, probabilities, right, float(np.median(seconds)) * 1e3)


def _classify(client: Client, scan: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Probabilities `[10]` of one scan."""
    answer: npt.NDArray[np.float32] = client.infer(MODEL, scan[None].astype("f4"))[0]
    return answer


def _classify_json(connection: HTTPConnection, scan: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """The same without a client for inference."""
    import numpy as np

    connection.request("POST", f"/v2/models/{MODEL}/infer", json_body(scan))
    with connection.getresponse() as response:
        body = response.read()
    if response.status != 200:
        raise TransportError(f"HTTP status {response.status}: {body.decode(errors='replace')}")
    return np.array(json.loads(body)["outputs"][0]["data"], np.float32)
