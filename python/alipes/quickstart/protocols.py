"""Every held-out scan through every protocol that can be used, and how many were read right."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alipes.quickstart import grpc_client
from alipes.quickstart.child import Addresses
from alipes.quickstart.digits import Digits
from alipes.quickstart.http_client import HttpClient

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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
    """Sends all scans through HTTP as JSON, HTTP as binary tensors, and gRPC where grpcio is installed."""
    with ExitStack() as stack:
        http = stack.enter_context(HttpClient(addresses.http))
        protocols: list[tuple[str, Classify]] = [
            ("HTTP, JSON", http.classify_json),
            ("HTTP, binary", http.classify_binary),
        ]
        if grpc_client.installed():
            protocols.append(("gRPC", stack.enter_context(grpc_client.GrpcClient(addresses.grpc)).classify))
        return [classify_each(protocol, classify, digits) for protocol, classify in protocols]


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
