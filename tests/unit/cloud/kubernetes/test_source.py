"""Where files of objects come from."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from alipes.cloud.kubernetes import source
from alipes.errors import CloudError, ConfigError
from support.ports import unused_address

FILES = {"/o/r/master/k/a.yaml": b"of master", "/o/r/dev/k/a.yaml": b"of dev", "/o/r/main/broken.yaml": None}


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server of this machine that has the files of a repository."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = FILES.get(self.path, b"")
            self.send_response(500 if content is None else 200 if content else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *parts: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(source, "_GITHUB", f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()
        thread.join()


def test_a_file_of_this_machine_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("ä")
    assert source.read(tmp_path / "a.yaml") == "ä"


def test_main_is_tried_before_master(github: None) -> None:
    assert source.read("k/a.yaml", "o/r") == "of master"


def test_a_named_branch_is_the_only_one(github: None) -> None:
    assert source.read("k/a.yaml", "o/r", "dev") == "of dev"
    with pytest.raises(ConfigError, match=r"repository o/r has no file k/a\.yaml on other$"):
        source.read("k/a.yaml", "o/r", "other")


def test_a_file_that_no_branch_has_is_refused(github: None) -> None:
    with pytest.raises(ConfigError, match=r"has no file none\.yaml on main or master"):
        source.read("none.yaml", "o/r")


def test_an_error_of_github_is_no_missing_file(github: None) -> None:
    with pytest.raises(CloudError, match="500"):
        source.read("broken.yaml", "o/r")


def test_a_github_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_GITHUB", f"http://{unused_address()}")
    with pytest.raises(CloudError, match="refused"):
        source.read("a.yaml", "o/r")


def test_a_missing_a_large_and_a_binary_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        source.read(tmp_path / "none.yaml")
    (tmp_path / "a.yaml").write_bytes(b"\xff\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        source.read(tmp_path / "a.yaml")
    monkeypatch.setattr(source, "MAX_FILE_BYTES", 1)
    with pytest.raises(ConfigError, match="more than 1 bytes"):
        source.read(tmp_path / "a.yaml")


def test_a_branch_without_a_repository_is_refused() -> None:
    with pytest.raises(ConfigError, match="a branch needs the repository"):
        source.read("a.yaml", branch="main")
