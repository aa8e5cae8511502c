"""Drives `wrk`: HTTP/1.1, a closed loop of connections that each wait for their answer."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from bench.load.tool import LoadFailed, Measurement, run

SCRIPT = Path(__file__).with_name("post.lua")
#: An answer that takes longer than this is an error.
TIMEOUT = "20s"
MARK = "FIGURES "


class Request(Protocol):
    """What can be posted: a piece of work, or a document."""

    @property
    def path(self) -> str:
        """Where it is posted."""

    @property
    def headers(self) -> dict[str, str]:
        """Request headers beside host and length."""

    @property
    def body_file(self) -> Path:
        """A file with its body."""


def post(
    port: int,
    request: Request,
    connections: int,
    duration_s: float,
    path: str | None = None,
    *,
    encrypted: bool = False,
) -> Measurement:
    """Posts a request over and over on each of ``connections``, which may be encrypted."""
    return _measure(_url(port, path or request.path, encrypted), _options(request), connections, duration_s)


def post_file(
    port: int, path: str, body: Path, headers: Mapping[str, str], connections: int, duration_s: float
) -> Measurement:
    """Posts the content of a file over and over on each of ``connections``."""
    words = [str(body), *(f"{name}:{value}" for name, value in headers.items())]
    return _measure(_url(port, path), words, connections, duration_s)


def get(port: int, path: str, connections: int, duration_s: float) -> Measurement:
    """Gets ``path`` over and over on each of ``connections``."""
    return _measure(_url(port, path), ["-"], connections, duration_s)


@contextmanager
def saturated(port: int, request: Request, connections: int) -> Iterator[None]:
    """Keeps a model busy, with requests waiting, while the block runs."""
    load = command(_url(port, request.path), _options(request), connections, limit_s=600)
    tool = subprocess.Popen(load, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        tool.terminate()
        tool.wait()


def command(url: str, arguments: list[str], connections: int, limit_s: float) -> list[str]:
    """The command line of one run that ends by itself after ``limit_s``."""
    options = [f"-c{connections}", "-t1", f"-d{int(limit_s) + 1}s", "--timeout", TIMEOUT, "--latency"]
    return ["wrk", *options, "-s", str(SCRIPT), url, "--", *arguments]


def _url(port: int, path: str, encrypted: bool = False) -> str:
    return f"{'https' if encrypted else 'http'}://127.0.0.1:{port}{path}"


def _options(request: Request) -> list[str]:
    return [str(request.body_file), *(f"{name}:{value}" for name, value in request.headers.items())]


def _measure(url: str, arguments: list[str], connections: int, duration_s: float) -> Measurement:
    printed = run(command(url, arguments, connections, duration_s + 5), duration_s, interrupt=True)
    figures = json.loads(printed[printed.rindex(MARK) + len(MARK) :].partition("\n")[0])
    if figures["errors"] or not figures["requests"]:
        raise LoadFailed(f"wrk: {figures['errors']} errors in {figures['requests']} requests to {url}")
    return Measurement(
        requests=figures["requests"],
        duration_s=figures["duration_us"] / 1e6,
        p50_us=figures["p50_us"],
        p99_us=figures["p99_us"],
    )
