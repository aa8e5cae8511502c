"""HTTP from a client's side: the standard library's connection, kept alive, and a few V2 routes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from alipes.errors import InferError, TransportError
from alipes.quickstart.digits import INPUT, MODEL, OUTPUT

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TIMEOUT_S: Final = 30.0
_HEADER_LENGTH: Final = "Inference-Header-Content-Length"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One model version of the repository index."""

    name: str
    state: str
    reason: str

    @property
    def failed(self) -> bool:
        """Whether it was tried and cannot serve."""
        return self.state == "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class BatchStatistic:
    """How often the server ran a batch of one size, and how long the model took for all of them together."""

    rows: int
    count: int
    compute_ns: int


class HttpClient:
    """One HTTP connection. Use as a context manager."""

    def __init__(self, address: str) -> None:
        """Connects with the first request, to `host:port`."""
        self._connection = HTTPConnection(address, timeout=_TIMEOUT_S)

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connection."""
        self._connection.close()

    def ready(self, model: str) -> bool:
        """Whether a model can answer."""
        status, _, _ = self._exchange("GET", f"/v2/models/{model}/ready")
        return status == 200

    def index(self) -> list[IndexEntry]:
        """Every model that the server knows of, with its state."""
        entries = json.loads(self._answer("POST", "/v2/repository/index", b"{}"))
        return [IndexEntry(entry["name"], entry.get("state", ""), entry.get("reason", "")) for entry in entries]

    def batches(self, model: str) -> list[BatchStatistic]:
        """What the server batched since it started, by batch size."""
        statistics = json.loads(self._answer("GET", f"/v2/models/{model}/stats"))["model_stats"][0]["batch_stats"]
        return [
            BatchStatistic(row["batch_size"], row["compute_infer"]["count"], row["compute_infer"]["ns"])
            for row in statistics
        ]

    def classify_json(self, scan: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Probabilities FP32 `[10]` of one scan `[8, 8]`, both as JSON numbers."""
        import numpy as np

        answer = json.loads(self._answer("POST", f"/v2/models/{MODEL}/infer", json_body(scan)))
        return np.array(answer["outputs"][0]["data"], np.float32)

    def classify_binary(self, scan: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Probabilities FP32 `[10]` of one scan `[8, 8]`, both as raw little-endian bytes behind a JSON header."""
        import numpy as np

        header, tensor = binary_parts(scan)
        headers = {_HEADER_LENGTH: str(len(header)), "Content-Type": "application/octet-stream"}
        status, answer_headers, body = self._exchange("POST", f"/v2/models/{MODEL}/infer", header + tensor, headers)
        _raise_unless_ok(status, body)
        return np.frombuffer(body, "<f4", offset=int(answer_headers[_HEADER_LENGTH]))

    def _answer(self, method: str, path: str, body: bytes | None = None) -> bytes:
        status, _, answer = self._exchange(method, path, body)
        _raise_unless_ok(status, answer)
        return answer

    def _exchange(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, bytes]:
        try:
            self._connection.request(method, path, body, headers or {})
            response = self._connection.getresponse()
            return response.status, response.headers, response.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise TransportError(f"{method} {path}: {type(error).__name__}: {error}") from error


def json_body(scan: npt.NDArray[np.uint8]) -> bytes:
    """A request for one scan, its pixels as JSON numbers."""
    tensor = {"name": INPUT, "datatype": "FP32", "shape": [1, *scan.shape], "data": scan.tolist()}
    return json.dumps({"inputs": [tensor]}).encode()


def binary_parts(scan: npt.NDArray[np.uint8]) -> tuple[bytes, bytes]:
    """A request for one scan in the binary tensor extension: the JSON header, and the pixels as FP32."""
    tensor = scan.astype("<f4").tobytes()
    described = {
        "name": INPUT,
        "datatype": "FP32",
        "shape": [1, *scan.shape],
        "parameters": {"binary_data_size": len(tensor)},
    }
    wanted = {"name": OUTPUT, "parameters": {"binary_data": True}}
    return json.dumps({"inputs": [described], "outputs": [wanted]}).encode(), tensor


def _raise_unless_ok(status: int, body: bytes) -> None:
    if status != 200:
        raise InferError(f"HTTP status {status}: {body.decode(errors='replace')}", model=MODEL)
