"""Downloads: whole, checked, gone on with, given up, and held once for all servers."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import socket
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request

import pytest
from alipes.errors import RepositoryError
from alipes.repository.storage import download as module
from alipes.repository.storage.cache import cached
from alipes.repository.storage.download import RemoteFile, download
from alipes.repository.storage.web import WebSource
from support.file_server import FileServer, file_server

CONTENT = bytes(range(256)) * 400
NEVER = threading.Event()


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server(model=CONTENT) as found:
        yield found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pauses end at once, and what is held lies in a folder of the test."""
    monkeypatch.setattr(module, "PAUSE_S", 0.001)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def archive(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        for name, content in files.items():
            written.writestr(name.replace("__", "/"), content)
    return made.getvalue()


def test_a_download_goes_on_where_its_connection_broke_off(server: FileServer, tmp_path: Path) -> None:
    server.breaks_after = 30_000
    download(RemoteFile(f"{server.address}/model"), tmp_path / "file", NEVER)
    assert (tmp_path / "file").read_bytes() == CONTENT
    ranges = [headers.get("range") for _, headers in server.requests[2:]]
    assert ranges == ["bytes=30000-", "bytes=60000-", "bytes=90000-"]


def test_a_download_goes_on_with_what_an_earlier_process_has_left(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT[:1000])
    download(RemoteFile(f"{server.address}/model"), tmp_path / "file", NEVER)
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.requests[-1][1]["range"] == "bytes=1000-"


def test_without_a_tag_nothing_is_gone_on_with(server: FileServer, tmp_path: Path) -> None:
    server.has_tags = False
    (tmp_path / "file").write_bytes(b"of another file")
    download(RemoteFile(f"{server.address}/model"), tmp_path / "file", NEVER)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_connection_that_always_breaks_ends_the_download(server: FileServer, tmp_path: Path) -> None:
    server.breaks_after = 0
    with pytest.raises(RepositoryError, match="breaks off after 0 bytes of 102400, again and again"):
        download(RemoteFile(f"{server.address}/model"), tmp_path / "file", NEVER)


def test_a_busy_server_gets_another_request_and_a_refusal_ends(server: FileServer, tmp_path: Path) -> None:
    server.failing = [503, 429, 500]
    download(RemoteFile(f"{server.address}/model"), tmp_path / "file", NEVER)
    before = len(server.requests)
    for path, what in (("gone", "answers 404; there is no such file"), ("model", "answers 403; who asks may not")):
        server.failing = [403] if path == "model" else []
        with pytest.raises(RepositoryError, match=what):
            download(RemoteFile(f"{server.address}/{path}"), tmp_path / "other", NEVER)
    assert len(server.requests) == before + 2


def test_a_silent_server_ends_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENCE_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:  # whose connections nobody accepts
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/model"
        with pytest.raises(RepositoryError, match=r"nothing has come for 0\.05 s"):
            download(RemoteFile(url), tmp_path / "file", NEVER)


def test_a_file_that_begins_again_and_again_ends_the_download(server: FileServer, tmp_path: Path) -> None:
    server.headers["Content-Length"] = str(len(CONTENT) + 1)  # and there is no such byte
    server.breaks_after = len(CONTENT)
    with pytest.raises(RepositoryError, match=r"416|again and again"):
        download(RemoteFile(f"{server.address}/model"), tmp_path / "file", NEVER)
    assert len(server.requests) < 4 * module.ATTEMPTS


def test_a_file_that_trickles_ends_the_download(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PACE_WINDOW_S", -1.0)
    monkeypatch.setattr(module, "SLOWEST_BYTES_PER_S", -(1 << 30))  # more than came, in the time that has gone
    with pytest.raises(RepositoryError, match="bytes a second"):
        download(RemoteFile(f"{server.address}/model"), tmp_path / "file", NEVER)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Content-MD5", base64.b64encode(hashlib.md5(b"other").digest()).decode()),
        ("x-goog-hash", f"crc32c=AAAA==,md5={base64.b64encode(hashlib.md5(b'other').digest()).decode()}"),
        ("Repr-Digest", f"sha-256=:{base64.b64encode(hashlib.sha256(b'other').digest()).decode()}:"),
    ],
)
def test_a_digest_of_the_server_is_checked(name: str, value: str, server: FileServer, tmp_path: Path) -> None:
    server.headers[name] = value
    with pytest.raises(RepositoryError, match=r"its (md5|sha256) is \w+ instead of"):
        download(RemoteFile(f"{server.address}/model"), tmp_path / "file", NEVER)
    assert not (tmp_path / "file").exists()


def test_a_digest_of_the_address_is_checked(server: FileServer) -> None:
    good = WebSource(f"{server.address}/model#sha256={hashlib.sha256(CONTENT).hexdigest()}")
    assert good.fetch(NEVER).read_bytes() == CONTENT
    good.close()
    with pytest.raises(RepositoryError, match=r"cannot fetch .*/model: its sha256 is"):
        WebSource(f"{server.address}/model#sha256={'0' * 64}").fetch(NEVER)
    with pytest.raises(RepositoryError, match="expected #sha256="):
        WebSource(f"{server.address}/model#md5=1")


def test_who_asks_is_for_one_host_alone(server: FileServer, tmp_path: Path) -> None:
    with file_server(model=CONTENT) as other:
        server.redirects["/moved"] = f"{other.address.replace('127.0.0.1', 'localhost')}/model"
        environ = {"127.0.0.1-headers": json.dumps({"Authorization": "Bearer secret"})}
        assert WebSource(f"{server.address}/moved", environ).fetch(NEVER).read_bytes() == CONTENT
        assert server.requests[0][1]["authorization"] == "Bearer secret"
        assert all("authorization" not in headers for _, headers in other.requests)


def test_an_address_with_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(RepositoryError, match=r"models\.example\.org-headers") as caught:
        WebSource("https://user:secret@models.example.org/model.onnx")
    assert "secret" not in str(caught.value)


def test_a_redirect_to_a_file_is_refused(server: FileServer) -> None:
    server.redirects["/moved"] = "file:///etc/passwd"
    with pytest.raises(RepositoryError, match="it leads to a place that is not safe"):
        WebSource(f"{server.address}/moved").fetch(NEVER)


def test_a_redirect_that_leaves_tls_is_refused() -> None:
    redirects = module._SafeRedirects()
    with pytest.raises(RepositoryError, match="it leads to http://host, which is not safe"):
        redirects.redirect_request(Request("https://host/a"), None, 302, "", {}, "http://host/b")
    followed = redirects.redirect_request(Request("https://host/a"), None, 302, "", {}, "https://other/b")
    assert followed is not None and followed.full_url == "https://other/b"


def test_an_archive_is_unpacked_and_held_for_the_next_server(server: FileServer) -> None:
    server.files["/models.zip"] = archive(m__model=b"one")
    first = WebSource(f"{server.address}/models.zip?sig=secret")
    folder = first.fetch(NEVER)
    assert (folder / "m" / "model").read_text() == "one"
    count = len(server.requests)
    second = WebSource(f"{server.address}/models.zip?sig=other")
    assert second.fetch(NEVER) == folder
    assert len(server.requests) == count + 1  # a look, and no download
    server.files["/models.zip"] = archive(m__model=b"two")
    third = WebSource(f"{server.address}/models.zip")
    assert (third.fetch(NEVER) / "m" / "model").read_text() == "two"
    assert (folder / "m" / "model").read_text() == "one"  # two servers use it still
    for source in (first, second, third):
        source.close()
    WebSource(f"{server.address}/models.zip").fetch(NEVER)
    assert not folder.exists()


def test_a_refused_archive_is_never_served(server: FileServer, tmp_path: Path) -> None:
    server.files["/models.zip"] = archive(**{"..__evil": b"evil"})
    for _ in range(2):
        with pytest.raises(RepositoryError, match=r"cannot fetch .*models\.zip: archive 'models\.zip' is refused"):
            WebSource(f"{server.address}/models.zip").fetch(NEVER)
    assert not list(tmp_path.rglob("evil"))


def test_an_entry_that_another_process_fills_is_awaited(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()
    found: list[Path] = []

    def fill(folder: Path) -> None:
        begun.set()
        go_on.wait()
        (folder / "file").write_text("whole")

    def fetch() -> None:
        entry = cached("address", "content", fill, NEVER)
        found.append(entry.path)
        entry.close()

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait()
    assert found == []
    begun.clear()
    go_on.set()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] and not begun.is_set() and (found[0] / "file").read_text() == "whole"


def test_what_was_half_fetched_is_not_used_and_gone_on_with(tmp_path: Path) -> None:
    def breaks(folder: Path) -> None:
        (folder / "file").write_text("half")
        raise RepositoryError("broken")

    with pytest.raises(RepositoryError, match="broken"):
        cached("address", "content", breaks, NEVER)
    seen: list[list[str]] = []
    entry = cached("address", "content", lambda folder: seen.append([one.name for one in folder.iterdir()]), NEVER)
    entry.close()
    assert seen == [["file"]]


def test_a_wait_for_another_process_ends_with_the_server(tmp_path: Path) -> None:
    cancelled = threading.Event()

    def fill(folder: Path) -> None:
        cancelled.set()
        with pytest.raises(RepositoryError, match="the server stops"):
            cached("address", "content", lambda _: None, cancelled)

    cached("address", "content", fill, NEVER).close()


def test_a_folder_of_somebody_else_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / f"alipes-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"alipes-{os.getuid()}").chmod(0o777)
    with pytest.raises(RepositoryError, match="not a folder of this user alone"):
        cached("address", "content", lambda _: None, NEVER)
