"""What the command line says of the payload log."""

from __future__ import annotations

import pytest
from alipes.config.load import parse_flags
from alipes.config.record_options import PayloadOptions
from alipes.errors import ConfigError

ROW = "--model-repository=models"


def read(*words: str, **environ: str) -> PayloadOptions:
    return parse_flags([ROW, *words], environ).payloads


def test_nothing_is_logged_unless_there_is_a_sink() -> None:
    payloads = read()
    assert (payloads.url, payloads.mode, payloads.sample, payloads.headers) == ("", "all", 1.0, ())


@pytest.mark.parametrize(
    ("url", "is_files"),
    [
        ("https://sink/", False),
        ("file:///logs", True),
        ("s3://bucket/logs", True),
        ("s3://http://host:9000/bucket", True),
        ("abfss://container@account.dfs.core.windows.net/logs", True),
    ],
)
def test_an_address_is_one_of_events_or_of_files(url: str, is_files: bool) -> None:
    payloads = read(f"--payload-log-url={url}")
    assert (payloads.url, payloads.is_files, payloads.format) == (url, is_files, "json")


def test_formats_are_those_of_files() -> None:
    assert read("--payload-log-url=file:///logs", "--payload-log-format=parquet").format == "parquet"
    with pytest.raises(ConfigError, match="'http://sink/' takes events, and no files"):
        read("--payload-log-url=http://sink/", "--payload-log-format=csv")


def test_headers_with_keys_are_redacted() -> None:
    payloads = read(
        "--payload-log-header=X-Team",
        "--payload-log-header=Authorization",
        "--payload-log-redact=X-Inner",
        "--http-restricted-api=health:Door=1",
        "--grpc-restricted-protocol=health:Gate=1",
    )
    assert payloads.headers == ("x-team", "authorization")
    assert {"authorization", "cookie", "x-api-key", "door", "triton-grpc-protocol-gate", "x-inner", "X-Inner"} <= set(
        payloads.redacted
    )


def test_events_say_what_the_environment_says_of_the_server() -> None:
    source = dict(read(INFERENCE_SERVICE_NAME="iris", POD_NAME="iris-0", POD_NAMESPACE="ns").source)
    assert source == {
        "source": "iris-0",
        "inferenceservicename": "iris",
        "namespace": "ns",
        "component": "predictor",
    }
    assert set(dict(read().source)) == {"source"}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--payload-log-url=sink:8080", "'sink:8080' is no address, such as http://sink:8080/, file:"),
        ("--payload-log-url=http://", "is no address"),
        ("--payload-log-url=file://", "is no address"),
        ("--payload-log-url=http://user:key@sink/", "a URL with a password"),
        ("--payload-log-url=http://user@sink/", "a URL with a password"),
        ("--payload-log-url=s3://key:secret@bucket/", "a URL with a password"),
        ("--payload-log-batch-size=0", "payload-log-batch-size"),
        ("--payload-log-sample=1%", "'1%' is no share from 0 to 1"),
        ("--payload-log-sample=nan", "is no share"),
        ("--payload-log-sample=1.5", "is no share"),
        ("--payload-log-max-bytes=0", "payload-log-max-bytes"),
    ],
)
def test_what_could_not_work_is_refused(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(word)
