"""Two servers that are one contender: a transformer, and the predictor behind it."""

from bench.servers.endpoint import Endpoint
from bench.servers.process import Process

__all__ = ["Pair"]


class Pair(Process):
    """The processes of a transformer and of its predictor, which end together."""

    def __init__(self, front: Process, behind: Process) -> None:
        """Takes both, which run."""
        self.name = f"{front.name}_{behind.name}"
        self.log = front.log
        self._front, self._behind = front, behind

    @classmethod
    def of(cls, front: Endpoint, behind: Endpoint) -> Endpoint:
        """The endpoint of the transformer, whose process stands for both."""
        return Endpoint(cls(front.process, behind.process), front.http_port, front.grpc_port)

    @property
    def pid(self) -> int:
        """Process id of the transformer."""
        return self._front.pid

    def log_tail(self) -> str:
        """The end of what both printed."""
        return f"{self._behind.log_tail()}\n{self._front.log_tail()}"

    def cpu_seconds(self) -> float:
        """Processor time of both."""
        return self._front.cpu_seconds() + self._behind.cpu_seconds()

    def resident_bytes(self) -> int:
        """Resident memory of both."""
        return self._front.resident_bytes() + self._behind.resident_bytes()

    def stop(self) -> None:
        """Ends both, the transformer first."""
        self._front.stop()
        self._behind.stop()
