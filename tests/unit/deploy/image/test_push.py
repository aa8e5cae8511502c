"""Images on their way into a registry that behaves as it is scripted."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from alipes.deploy.image.contents import text
from alipes.deploy.image.credentials import Credentials, find_credentials
from alipes.deploy.image.exchange import Exchange, NoAnswer, Response
from alipes.deploy.image.layer import write_layer
from alipes.deploy.image.manifest import Built, Image, image_of
from alipes.deploy.image.push import Push
from alipes.deploy.image.reference import Reference
from alipes.deploy.image.refusal import PushError
from alipes.progress.work import Silent
from support.command import alipes, check_readable
from support.scripted_registry import Scripted, scripted_registry

ALICE = Credentials("alice", "secret")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    layers = []
    for name in ("lower", "upper"):
        blob = tmp_path_factory.mktemp("layers") / name
        with blob.open("wb") as out:
            layer = write_layer({name: text(noise(name))}, out, 0, lambda _: None)
        layers.append(Built(name, name, layer, blob, False))
    return image_of(layers, b'{"bomFormat": "CycloneDX"}', {}, {}, 0)


def noise(name: str) -> str:
    """A megabyte that compression leaves as large."""
    return Random(name).randbytes(1 << 20).hex()


@pytest.fixture
def script() -> Iterator[Scripted]:
    with scripted_registry(Scripted()) as made:
        yield made


def push(script: Scripted, credentials: Credentials | None = None, timeout_s: float = 30.0) -> Push:
    target = Reference.read(f"{script.address}/team/models:1")
    return Push(target, Exchange(target, credentials, timeout_s=timeout_s), pause_s=0)


def test_layers_arrive_before_the_manifest_and_only_once(script: Scripted, image: Image) -> None:
    assert push(script).send(image, Silent())
    assert script.manifests["1"] == image.manifest
    for one in image.layers:
        assert script.blobs[one.layer.digest] == one.blob.read_bytes()
    assert script.requests.index("PUT /v2/team/models/manifests/1") > script.requests.index("PUT /upload")
    script.requests.clear()
    assert push(script).send(image, Silent())
    assert "PUT /upload" not in script.requests


def test_the_bill_of_materials_is_attached(script: Scripted, image: Image) -> None:
    push(script).send(image, Silent())
    (attached,) = [json.loads(one) for one in script.manifests.values() if b"subject" in one]
    assert attached["subject"]["digest"] == image.digest
    assert attached["artifactType"] == "application/vnd.cyclonedx+json"
    assert script.blobs[attached["layers"][0]["digest"]] == image.sbom


def test_a_registry_that_attaches_nothing_takes_the_image_all_the_same(script: Scripted, image: Image) -> None:
    script.attaches = False
    assert not push(script).send(image, Silent())
    assert script.manifests == {"1": image.manifest}


class Hangs:
    """Leaves uploads in the middle, so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.seen = 0
        self.end = threading.Event()

    def __call__(self, request: BaseHTTPRequestHandler) -> bool:
        if request.command != "PUT" or self.seen == self.left:
            return False
        self.seen += 1
        request.rfile.read(1 << 16)
        self.end.wait()
        request.close_connection = True
        return True


class Hurried(Exchange):
    """Waits long for everything but uploads, however busy the machine is, and counts those."""

    def __init__(self, target: Reference) -> None:
        super().__init__(target, None, timeout_s=0.2)
        self.uploads = 0
        self._patient = Exchange(target, None)

    def ask(self, method: str, path: str, **options: Any) -> Response:
        if method != "PUT":
            return self._patient.ask(method, path, **options)
        self.uploads += 1
        return super().ask(method, path, **options)


def test_a_registry_that_stops_in_the_middle_of_a_layer_is_one_error(script: Scripted, image: Image) -> None:
    hangs = Hangs(99)
    script.fault = hangs
    target = Reference.read(f"{script.address}/team/models:1")
    exchange = Hurried(target)
    try:
        with pytest.raises(NoAnswer, match=r"has not answered for 0\.2 s; it was to take the layer lower.* 3 times"):
            Push(target, exchange, pause_s=0).send(image, Silent())
    finally:
        hangs.end.set()
    assert exchange.uploads == 3
    assert script.manifests == {}


def test_a_layer_that_was_left_in_the_middle_is_sent_again_whole(script: Scripted, image: Image) -> None:
    hangs = Hangs(1)
    script.fault = hangs
    try:
        push(script, timeout_s=2).send(image, Silent())
    finally:
        hangs.end.set()
    assert script.manifests["1"] == image.manifest
    assert all(script.blobs[one.layer.digest] == one.blob.read_bytes() for one in image.layers)


def refusing(status: int, times: int = 99, of: str = "PUT /upload") -> object:
    left = [times]

    def fault(request: BaseHTTPRequestHandler) -> bool:
        if left[0] == 0 or f"{request.command} {request.path}".partition("?")[0] != of:
            return False
        left[0] -= 1
        request.rfile.read(int(request.headers["Content-Length"]))
        request.reply(status, b'{"errors": [{"code": "DENIED", "message": "because of that"}]}')  # type: ignore[attr-defined]
        return True

    return fault


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, "does not allow it"),
        (404, "has no such name"),
        (413, "too large"),
        (400, "refuses it"),
        (503, "refuses it"),
    ],
)
def test_a_refusal_is_named_with_its_reason(status: int, words: str, script: Scripted, image: Image) -> None:
    script.fault = refusing(status, of="POST /v2/team/models/blobs/uploads/")  # type: ignore[assignment]
    with pytest.raises(
        PushError, match=rf"was not pushed: .* {words}.* \(the layer lower: {status}, because of that\)"
    ):
        push(script).send(image, Silent())


def test_a_busy_registry_gets_another_request(script: Scripted, image: Image) -> None:
    script.fault = refusing(503, times=2, of="PUT /v2/team/models/manifests/1")  # type: ignore[assignment]
    assert push(script).send(image, Silent())


@pytest.mark.parametrize("login", ["Basic", "Bearer"])
def test_who_is_logged_in_may_push(login: str, script: Scripted, image: Image) -> None:
    script.login = login
    made = push(script, ALICE)
    made.check()
    assert made.send(image, Silent())
    assert script.manifests["1"] == image.manifest


@pytest.mark.parametrize("login", ["Basic", "Bearer"])
@pytest.mark.parametrize(
    ("credentials", "words"),
    [(None, "log in with `podman login"), (Credentials("mallory", "guessed"), "does not accept the user mallory")],
)
def test_who_is_not_logged_in_is_sent_to_log_in(
    login: str, credentials: Credentials | None, words: str, script: Scripted
) -> None:
    script.login = login
    with pytest.raises(PushError, match=words) as caught:
        push(script, credentials).check()
    assert "guessed" not in f"{caught.value} {credentials}"


def test_a_password_goes_to_the_registry_alone(script: Scripted, image: Image) -> None:
    script.login = "Basic"
    with scripted_registry(Scripted()) as other:
        # As registries do that keep blobs elsewhere.
        def elsewhere(request: BaseHTTPRequestHandler) -> bool:
            if request.command != "POST" or not script.accepts(request.headers.get("Authorization", "")):
                return False
            request.reply(202, headers={"Location": f"http://{other.address}/upload?state=1"})  # type: ignore[attr-defined]
            return True

        script.fault = elsewhere
        push(script, ALICE).send(image, Silent())
        assert set(other.blobs) >= {one.layer.digest for one in image.layers}
        assert set(other.authorizations) == {""}


@pytest.mark.parametrize(
    ("where", "words"),
    [("http://other.example/x", "is not safe"), ("file:///etc/passwd", "is not safe"), ("ftp://h/x", "is not safe")],
)
def test_nothing_leaves_tls(where: str, words: str) -> None:
    exchange = Exchange(Reference.read("registry.example.com/a"), ALICE)
    with pytest.raises(PushError, match=words):
        exchange.ask("PUT", where)
    assert exchange._address("http://registry.example.com/x") == "https://registry.example.com/x"
    assert exchange._address("/v2/") == "https://registry.example.com/v2/"


def test_only_this_machine_does_without_tls_unless_that_is_wanted() -> None:
    assert Exchange(Reference.read("127.0.0.1:5000/a"), None).base == "http://127.0.0.1:5000"
    assert Exchange(Reference.read("localhost:5000/a"), None).base == "http://localhost:5000"
    assert Exchange(Reference.read("10.0.0.1:5000/a"), None).base == "https://10.0.0.1:5000"
    assert Exchange(Reference.read("10.0.0.1:5000/a"), None, plain=True).base == "http://10.0.0.1:5000"
    assert Exchange(Reference.read("docker.io/team/a"), None).base == "https://registry-1.docker.io"


def test_a_changed_manifest_is_an_error(script: Scripted, image: Image) -> None:
    def fault(request: BaseHTTPRequestHandler) -> bool:
        if "manifests" not in request.path:
            return False
        request.rfile.read(int(request.headers["Content-Length"]))
        request.reply(201, headers={"Docker-Content-Digest": "sha256:0"})  # type: ignore[attr-defined]
        return True

    script.fault = fault
    with pytest.raises(PushError, match="has changed the manifest: it calls it sha256:0"):
        push(script).send(image, Silent())


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx"])
def test_what_is_no_registry_is_one_error(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            connection.recv(4096)
            connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(PushError, match="does not answer"):
            push(SimpleNamespace(address=f"127.0.0.1:{listening.getsockname()[1]}")).check()  # type: ignore[arg-type]
        thread.join()


def test_a_registry_answers_before_anything_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    done = alipes("deploy", "image", "--push", f"{address}/models:1", folder=tmp_path)
    check_readable(done)
    assert (done.code, list(tmp_path.iterdir())) == (1, [])
    assert f"{address} does not answer: Connection refused" in done.message


@pytest.mark.parametrize("words", [["--push", "models"], ["--push", "example.com/Models"]])
def test_a_wrong_name_is_refused(words: list[str], tmp_path: Path) -> None:
    done = alipes("deploy", "image", *words, folder=tmp_path)
    check_readable(done)
    assert done.code == 1


def noted(path: Path, **document: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def entry(user: str, password: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_logins_of_docker_and_podman_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_credentials("example.com") is None
    noted(home / ".config/containers/auth.json", auths={"example.com": entry("podman", "a:b")})
    assert find_credentials("example.com") == Credentials("podman", "a:b")
    noted(home / ".docker/config.json", auths={"https://example.com/v1/": entry("docker", "x"), "other": {}})
    assert find_credentials("example.com") == Credentials("docker", "x")
    noted(home / "named.json", auths={"example.com": entry("named", "x")})
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(home / "named.json"))
    assert find_credentials("example.com") == Credentials("named", "x")
    assert find_credentials("other.example") is None


def test_the_hub_has_a_name_of_its_own(home: Path) -> None:
    noted(home / ".docker/config.json", auths={"https://index.docker.io/v1/": entry("hub", "x")})
    assert find_credentials("docker.io") == Credentials("hub", "x")


def test_a_program_that_has_the_password_is_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted(home / ".docker/config.json", credsStore="mine", credHelpers={"token.example": "token"})
    for name, user in (("mine", "alice"), ("token", "<token>")):
        program = home / f"docker-credential-{name}"
        program.write_text(
            f'#!/bin/sh\nread host\necho "{{\\"Username\\": \\"{user}\\", \\"Secret\\": \\"of $host\\"}}"\n'
        )
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:/usr/bin:/bin")
    assert find_credentials("example.com") == Credentials("alice", "of example.com")
    with pytest.raises(PushError, match="identity token"):
        find_credentials("token.example")
    (home / "docker-credential-mine").write_text("#!/bin/sh\nexit 1\n")
    assert find_credentials("example.com") is None
    (home / "docker-credential-mine").unlink()
    with pytest.raises(PushError, match="docker-credential-mine, which has the password"):
        find_credentials("example.com")


@pytest.mark.parametrize("content", ["", "[]", '{"auths": {"example.com": {"auth": "%"}}}', '{"auths": 1}'])
def test_a_damaged_note_of_logins_is_named(content: str, home: Path) -> None:
    path = home / ".docker" / "config.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(PushError, match=r"config\.json, which says who is logged in, cannot be read"):
        find_credentials("example.com")
