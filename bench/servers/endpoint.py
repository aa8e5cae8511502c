"""Where a measured server is asked for a piece of work."""

import ssl
from dataclasses import dataclass, field

from bench.servers import probe
from bench.servers.process import Process
from bench.work import Work


@dataclass(frozen=True)
class Endpoint:
    """A running server and its ports; a port that it does not have is 0."""

    process: Process
    http_port: int = 0
    grpc_port: int = 0
    metrics_port: int = 0
    #: Paths of models that are not where the protocol has them.
    paths: dict[str, str] = field(default_factory=dict)
    #: What knows the certificate of its HTTP port, where that is encrypted.
    tls: ssl.SSLContext | None = None

    def port(self, work: Work) -> int:
        """The port that takes this form of work."""
        return self.grpc_port if work.is_grpc else self.http_port

    def path(self, work: Work) -> str:
        """Where this work is posted."""
        return self.paths.get(work.model.name, work.path)

    def check(self, work: Work) -> int:
        """Sends the work once; see `probe.check`."""
        return probe.check(self.port(work), work, self.path(work), tls=self.tls)
