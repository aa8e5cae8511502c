"""The options that say who is asked, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, cast

from alipes.compat.perf_analyzer.failures import Exit, Failed, OptionFailed
from alipes.compat.perf_analyzer.options import C_API, LANGUAGE_MODELS, OTHER_METHODS
from alipes.compat.perf_analyzer.parser import Argument
from alipes.compat.perf_analyzer.settings import Target
from alipes.compat.perf_analyzer.values import choice, existing_file, integer
from alipes.compat.perf_analyzer.words import Words

__all__ = ["read_target"]

_SERVICES: Final = ("triton", "tfserving", "torchserve", "kserve_v1", "http")
_REFUSED_SERVICES: Final = {
    "openai": LANGUAGE_MODELS,
    "triton_c_api": C_API,
    "dynamic_grpc": OTHER_METHODS,
}
_SERVICES_WANTED: Final = "The available options are 'triton', 'tfserving', 'torchserve', 'kserve_v1', or 'http'."
_PORTS: Final = {"http": "localhost:8000", "grpc": "localhost:8001"}
_TENSORFLOW: Final = "localhost:8500"


def read_target(words: Words) -> Target:
    """The server, the model and the way to it.

    Raises:
        OptionFailed: If a value cannot be read.
        Failed: If an option is not served here.
    """
    kind = words.read("service-kind", _service, "triton")
    protocol: Literal["http", "grpc"] = words.read("protocol", _protocol, "http")
    model = words.text("model")
    if not model and kind != "http":
        raise OptionFailed("Failed to parse -m (model name). The value must be specified.")
    usual = _TENSORFLOW if kind == "tfserving" and protocol == "grpc" else _PORTS[protocol]
    url = words.text("url") or usual
    composing = tuple(_versioned(text) for text in words.text("bls-composing-models").split(",") if text)
    return Target(
        model,
        words.text("model-version"),
        kind,
        url,
        protocol,
        dict(_header(argument) for argument in words.all("header")),
        words.text("endpoint"),
        composing,
        words.text("model-signature-name") or "serving_default",
        words.read("grpc-compression-algorithm", _compression, ""),
        _encryption(words, protocol),
    )


def _service(argument: Argument) -> str:
    if argument.value in _REFUSED_SERVICES:
        raise Failed(
            f"Error: {argument.written} {argument.value} is not served: {_REFUSED_SERVICES[argument.value]}",
            Exit.OPTION,
        )
    return choice(argument, _SERVICES, _SERVICES_WANTED)


def _compression(argument: Argument) -> str:
    wanted = "The available options are 'gzip', 'deflate', or 'none'."
    return choice(argument, ("gzip", "deflate", "none"), wanted).removeprefix("none")


def _protocol(argument: Argument) -> Literal["http", "grpc"]:
    protocol = argument.value.lower()
    if protocol not in _PORTS:
        raise OptionFailed("Failed to parse -i (protocol). The value should be either HTTP or gRPC.")
    return cast(Literal["http", "grpc"], protocol)


def _header(argument: Argument) -> tuple[str, str]:
    name, colon, value = argument.value.partition(":")
    if not colon or not name.strip():
        raise OptionFailed("Failed to parse -H. The value does not match <name:value>.")
    return name.strip(), value.strip()


def _versioned(text: str) -> tuple[str, str]:
    name, _, version = text.strip().partition(":")
    return name, version


def _encryption(words: Words, protocol: str) -> dict[str, Path] | None:
    names = {
        "grpc": ("ssl-grpc-root-certifications-file", "ssl-grpc-certificate-chain-file", "ssl-grpc-private-key-file"),
        "http": (
            "ssl-https-ca-certificates-file",
            "ssl-https-client-certificate-file",
            "ssl-https-private-key-file",
        ),
    }
    files = {
        role: existing_file(argument)
        for role, name in zip(("roots", "certificate", "key"), names[protocol], strict=True)
        if (argument := words.last(name)) is not None
    }
    for name, most in (("ssl-https-verify-peer", 1), ("ssl-https-verify-host", 2)):
        if (argument := words.last(name)) is not None:
            _verifying(argument, most)
    for name in ("ssl-https-client-certificate-type", "ssl-https-private-key-type"):
        if (argument := words.last(name)) is not None and (
            choice(argument, ("PEM", "DER"), "The available options are 'PEM' or 'DER'.") == "DER"
        ):
            raise Failed(f"Error: {argument.written} DER is not served: files are PEM", Exit.OPTION)
    wanted = words.has("ssl-grpc-use-ssl") if protocol == "grpc" else words.text("url").startswith("https://")
    return files if wanted or files else None


def _verifying(argument: Argument, most: int) -> None:
    choices = "either 0 or 1" if most == 1 else "either 0, 1, or 2"
    if not 0 <= integer(argument) <= most:
        raise OptionFailed(f"Failed to parse {argument.written}. The value must be {choices}.")
    if integer(argument) < most:
        raise Failed(f"Error: {argument.written} {argument.value} is not served: name the roots to trust", Exit.OPTION)
