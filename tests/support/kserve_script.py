"""A script of the KServe SDK that serves, run as it stands by `python -m alipes.compat kserve`."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from support.ports import free_ports
from support.waiting import TIMEOUT_S, until

__all__ = ["EXAMPLES", "OK", "OURS", "Answer", "KServeScript", "ask"]

OURS: Final = ("-m", "alipes.compat", "kserve")
"""What stands between the interpreter and a script, so that alipes answers."""

EXAMPLES: Final = Path(__file__).parents[1] / "scripts" / "kserve" / "examples"

OK: Final = 200

_STARTS: Final = 5
"""Most starts of a script, whose ports are free when they are looked for, and may be taken before it listens."""


@dataclass(frozen=True)
class Answer:
    """An answer: its status, its headers by small letters, and its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """What the body says as JSON."""
        return json.loads(self.body)


def ask(url: str, body: Any = None, *, tls: ssl.SSLContext | None = None, **headers: str) -> Answer:
    """The answer to a request; an object is posted as JSON, bytes as they are, and nothing is a GET."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if data is not None:
        sent.setdefault("content-type", "application/json")
    request = urllib.request.Request(url, data, sent)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=tls) as response:
            return Answer(response.status, {n.lower(): v for n, v in response.headers.items()}, response.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, {n.lower(): v for n, v in error.headers.items()}, error.read())


class KServeScript:
    """A process that runs a script. A context manager; what is left of it is ended.

    Attributes:
        http: Address of its server over HTTP.
        grpc: `host:port` of its server over gRPC.
        is_sdk: Whether the SDK itself runs it.
    """

    def __init__(  # noqa: PLR0913  # as it is started
        self,
        name: str,
        folder: Path,
        *arguments: str,
        last: str = "model",
        python: str = sys.executable,
        way: tuple[str, ...] = OURS,
        environment: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Starts it with ports that are free.

        Args:
            name: An example's.
            folder: Where it runs.
            arguments: More of its command line.
            last: The model that it registers last; empty to wait for the server alone.
            python: The interpreter.
            way: What stands between it and the script.
            environment: More of its environment.
            tls: Knows its certificate, where it has one.
        """
        self._last = last
        self.is_sdk = way != OURS
        self._command = [python, *way, str(EXAMPLES / f"{name}.py"), *arguments]
        self._folder, self._environment, self._tls = folder, environment, tls
        self._start()

    def _start(self) -> None:
        http, grpc = free_ports(2)
        scheme = "http" if self._tls is None else "https"
        self.http, self.grpc = f"{scheme}://127.0.0.1:{http}", f"127.0.0.1:{grpc}"
        # A file, which takes whatever the script writes: nobody reads it meanwhile.
        self._output = self._folder / f"output-{http}"
        output = self._output.open("w", encoding="utf-8")
        self.process = subprocess.Popen(
            [*self._command, f"--http_port={http}", f"--grpc_port={grpc}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env={**os.environ, **(self._environment or {})},
            start_new_session=True,
        )
        output.close()

    def __enter__(self) -> Self:
        """Waits for its server; where another process took a port that was free, it is started with others."""
        for _ in range(_STARTS):
            until(lambda: self.process.poll() is not None or self._is_ready())
            if self.process.poll() is None:
                return self
            assert "in use" in self.output, self.output
            self._start()
        raise AssertionError("its ports are always taken")

    def _is_ready(self) -> bool:
        try:
            path = f"models/{self._last}/ready" if self._last else "health/live"
            return ask(f"{self.http}/v2/{path}", tls=self._tls).status == OK
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self, number: int = signal.SIGTERM) -> str:
        """Sends it a signal; gives what it wrote, once it has ended by itself."""
        self.process.send_signal(number)
        assert self.process.wait(TIMEOUT_S) == 0, self.output
        return self.output

    @property
    def output(self) -> str:
        """What it has written."""
        return self._output.read_text(encoding="utf-8")
