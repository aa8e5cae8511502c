"""A real Prometheus that reads servers of a test, and answers questions."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from support.ports import free_ports
from support.waiting import TIMEOUT_S, until

__all__ = ["Prometheus", "is_installed", "prometheus"]


def is_installed() -> bool:
    """Whether Prometheus and its tool are there."""
    return shutil.which("prometheus") is not None and shutil.which("promtool") is not None


class Prometheus:
    """A running one."""

    def __init__(self, port: int) -> None:
        """Takes its port on this machine."""
        self._url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            with urlopen(f"{self._url}/-/ready", timeout=TIMEOUT_S) as response:
                return bool(response.status == 200)
        except (URLError, ConnectionError):
            return False

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression now."""
        query = urlencode({"query": expression})
        with urlopen(f"{self._url}/api/v1/query?{query}", timeout=TIMEOUT_S) as response:
            found: list[dict[str, Any]] = json.load(response)["data"]["result"]
        return found


@contextmanager
def prometheus(folder: Path, targets: Sequence[str], rules: Path | None = None) -> Iterator[Prometheus]:
    """Prometheus, which reads metrics of `host:port` every second, and evaluates rules as often."""
    (port,) = free_ports(1)
    job = {"job_name": "alipes", "static_configs": [{"targets": list(targets)}]}
    seconds = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config = {"global": seconds, "scrape_configs": [job], "rule_files": [str(rules)] if rules else []}
    file = folder / "prometheus.json"
    file.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    command = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            server = Prometheus(port)
            until(lambda: process.poll() is not None or server.is_ready(), "Prometheus does not answer")
            assert process.poll() is None, (folder / "prometheus.log").read_text()
            yield server
        finally:
            process.kill()
            process.wait(TIMEOUT_S)
