"""`alipes perf_analyzer` over encrypted connections, with a certificate of its own and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.certificates import Authority, Files, encrypted
from support.command import alipes
from support.perf_models import add_perf_models
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

FEW = ("--request-count", "10")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def client(authority: Authority) -> Files:
    return authority.files("client")


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, serve_module: Serve
) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("encrypted") / "models"
    add_perf_models(repository)
    files = authority.files("server")
    yield serve_module(repository, *encrypted("http", files), *encrypted("grpc", files, authority.root))


def test_https_is_measured_with_the_roots_that_are_named(server: ServerProcess, authority: Authority) -> None:
    words = ("-m", "mlp", "-u", f"https://{server.http}", *FEW)
    trusting = ("--ssl-https-ca-certificates-file", str(authority.root), "--ssl-https-verify-peer", "1")
    done = alipes("perf_analyzer", *words, *trusting)
    assert (done.code, done.err) == (0, "")
    refused = alipes("perf_analyzer", *words)
    assert refused.code == 99
    assert refused.err.startswith("error: failed to get model metadata: ")


def test_grpc_is_measured_with_a_certificate_of_the_client(
    server: ServerProcess, authority: Authority, client: Files, tmp_path: Path
) -> None:
    words = ("-m", "mlp", "-i", "grpc", "-u", server.grpc, "--ssl-grpc-use-ssl", *FEW)
    trusting = ("--ssl-grpc-root-certifications-file", str(authority.root))
    own = ("--ssl-grpc-certificate-chain-file", str(client.certificate), "--ssl-grpc-private-key-file", str(client.key))
    done = alipes("perf_analyzer", *words, *trusting, *own)
    assert (done.code, done.err) == (0, "")
    assert alipes("perf_analyzer", *words, *trusting).code == 99


def test_encryption_that_cannot_be_had_is_refused(tmp_path: Path) -> None:
    words = ("perf_analyzer", "-m", "mlp")
    for option in ("--ssl-https-verify-peer=0", "--ssl-https-verify-host=0", "--ssl-https-private-key-type=DER"):
        done = alipes(*words, option)
        assert done.code == 3
        assert option.partition("=")[0] in done.err
    done = alipes(*words, "--ssl-https-ca-certificates-file", str(tmp_path / "gone"))
    assert done.err.splitlines()[0].endswith("--ssl-https-ca-certificates-file. The value must be a valid file path.")
    no_certificate = tmp_path / "none.pem"
    no_certificate.write_text("nothing")
    done = alipes(*words, "--ssl-https-ca-certificates-file", str(no_certificate))
    assert done.code == 99
    assert "Traceback" not in done.err
