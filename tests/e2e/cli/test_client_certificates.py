"""The certificates of the command line's clients: `--tls-roots`, `--tls-cert` and `--tls-key`, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.certificates import Authority, Files, encrypted
from support.command import Done, alipes, check_readable
from support.models import add_model, times
from support.server import ServerProcess


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def own(authority: Authority) -> Files:
    return authority.files("client")


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess], authority: Authority
) -> Iterator[ServerProcess]:
    """One that admits clients with a certificate of its authority alone."""
    models = tmp_path_factory.mktemp("certificates") / "models"
    add_model(models, "double", times())
    flags = [
        flag for endpoint in ("http", "grpc") for flag in encrypted(endpoint, authority.files("server"), authority.root)
    ]
    yield serve_module(models, *flags)


def asked(server: ServerProcess, *words: str, wire: str = "https") -> Done:
    url = f"https://{server.http}" if wire == "https" else f"grpcs://{server.grpc}"
    return alipes(*words, f"--url={url}")


@pytest.mark.parametrize("wire", ["https", "grpcs"])
@pytest.mark.parametrize(
    "words",
    [
        ["infer", "double", "[[1, 2]]"],
        ["stats", "double"],
        ["models", "list"],
        ["status"],
        ["loadtest", "double", "-n", "10"],
    ],
    ids=" ".join,
)
def test_a_command_shows_its_own_certificate(
    server: ServerProcess, authority: Authority, own: Files, words: list[str], wire: str
) -> None:
    options = [f"--tls-roots={authority.root}", f"--tls-cert={own.certificate}", f"--tls-key={own.key}"]
    done = asked(server, *words, *options, wire=wire)
    assert done.code == 0, done.err


def test_what_is_wrong_with_certificates_is_explained_in_options(
    server: ServerProcess, authority: Authority, own: Files
) -> None:
    for options, words in (
        ([], "was issued by nobody that this client trusts: give the authority's certificate with --tls-roots FILE"),
        (
            [f"--tls-roots={authority.root}"],
            "asks for a certificate of the client: give it with --tls-cert FILE --tls-key FILE",
        ),
        ([f"--tls-cert={own.certificate}"], "Tls has a certificate without its key"),
    ):
        done = asked(server, "stats", *options)
        assert done.code == 1
        assert words in done.message
        check_readable(done)
