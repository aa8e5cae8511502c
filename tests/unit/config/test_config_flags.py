"""Drives every row of the table of flags."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.config.flags import FLAGS, Flag, environment_name, find
from alipes.config.load import parse_flags
from alipes.config.payloads import SECRET_HEADERS
from alipes.config.settings import SETTINGS
from alipes.errors import ConfigError

# Triton's command line, as its own help lists it.
TRITON = set(
    """
allow-client-shm allow-cpu-metrics allow-gpu-metrics allow-grpc allow-http allow-metrics allow-sagemaker allow-vertex-ai
backend-config backend-directory buffer-manager-thread-count cache-config cache-directory cuda-memory-pool-byte-size
cuda-virtual-address-size disable-auto-complete-config enable-peer-access exit-on-error exit-timeout-secs grpc-address
grpc-header-forward-pattern grpc-http2-max-ping-strikes grpc-http2-max-pings-without-data
grpc-http2-min-recv-ping-interval-without-data grpc-infer-allocation-pool-size grpc-infer-response-compression-level
grpc-infer-thread-count grpc-keepalive-permit-without-calls grpc-keepalive-time grpc-keepalive-timeout
grpc-max-connection-age grpc-max-connection-age-grace grpc-max-response-pool-size grpc-port grpc-restricted-protocol
grpc-root-cert grpc-server-cert grpc-server-key grpc-use-ssl grpc-use-ssl-mutual host-policy http-address
http-header-forward-pattern http-max-input-size http-port http-restricted-api http-thread-count id load-model log-error
log-file log-format log-info log-verbose log-warning metrics-address metrics-config metrics-interval-ms metrics-port
min-supported-compute-capability model-config-name model-control-mode model-load-gpu-limit model-load-retry-count
model-load-thread-count model-namespacing model-repository model-store pinned-memory-pool-byte-size rate-limit
rate-limit-resource repoagent-directory repository-poll-secs response-cache-byte-size reuse-grpc-port reuse-http-port
sagemaker-port sagemaker-safe-port-range sagemaker-thread-count strict-model-config strict-readiness trace-config
trace-count trace-file trace-level trace-log-frequency trace-rate vertex-ai-default-model vertex-ai-port
vertex-ai-thread-count
""".split()  # noqa: SIM905  # a list of words reads better as words
)


# Flags of ours: what Triton has no word for.
OURS = {
    "api-key",
    "api-key-file",
    "api-key-open",
    "allowed-hosts",
    "cors-origins",
    "ensemble-steps",
    "execution-threads",
    "exit-grace-secs",
    "idle-exit",
    "allow-pickles",
    "gpu-fallback",
    "graph",
    "graph-json",
    "graph-root-cert",
    "grpc-max-expanded-bytes",
    "grpc-max-request-bytes",
    "header-timeout-secs",
    "http2-max-control-frames",
    "idle-timeout-secs",
    "inferencegraph-name",
    "max-connections",
    "max-inflight-bytes",
    "max-header-bytes",
    "max-header-count",
    "model-load-timeout-secs",
    "propagate-headers",
    "reload",
    "shared-memory-max-regions",
    "ssl-reload-secs",
    "stall-timeout-secs",
    "streaming-max-sequences",
    *(f"payload-log-{what}" for what in ("header", "max-bytes", "mode", "redact", "sample", "timeout", "url")),
    *(f"payload-log-{what}" for what in ("batch-interval", "batch-size", "format")),
    "triton-release",
    "trusted-proxies",
    "turn-clock",
    "worker-memory",
    *(
        f"{prefix}-{what}"
        for prefix in ("http", "metrics")
        for what in ("root-cert", "server-cert", "server-key", "use-ssl", "use-ssl-mutual")
    ),
}

# Values of flags whose texts have a form of their own, as text and as it should be read.
SAMPLES: dict[str, tuple[str, Any]] = {
    "trace-level": ("tensors", ("TENSORS",)),
    "payload-log-url": ("http://sink:8080/", "http://sink:8080/"),
    "payload-log-sample": ("0.25", 0.25),
    "payload-log-redact": ("some", tuple(sorted((*SECRET_HEADERS, "some")))),
}

# Flags that make no sense alone: what else has to be given.
COMPANIONS = {
    "load-model": ["--model-control-mode=explicit"],
    **{
        f"{prefix}-{switch}": [f"--{prefix}-{file}=file" for file in ("server-cert", "server-key", "root-cert")]
        for prefix in ("http", "grpc", "metrics")
        for switch in ("use-ssl", "use-ssl-mutual")
    },
}


def sample(flag: Flag) -> tuple[str, Any]:
    """A value that differs from the default: as text, and as it should be read."""
    if flag.kind == "bool":
        return str(not flag.default).lower(), not flag.default
    if flag.kind in ("int", "level"):
        number = int(str(flag.default)) + 111  # far enough that no port meets another
        number = number if number <= flag.high else 1
        return str(number), number
    if flag.kind == "seconds":
        return "0.25", 0.25
    if flag.name in SAMPLES:
        return SAMPLES[flag.name]
    if flag.kind == "choice":
        word = next(choice for choice in flag.choices if choice != flag.default)
        return word, word
    return ("some", ("some",)) if flag.kind == "list" else ("some", "some")


def rows(status: str) -> list[Any]:
    return [pytest.param(flag, id=flag.name) for flag in FLAGS if flag.status == status]


def test_every_flag_of_triton_has_a_row() -> None:
    assert {flag.name for flag in FLAGS} - TRITON == OURS
    assert TRITON - {flag.name for flag in FLAGS} == set()


def test_names_are_unique() -> None:
    assert len({flag.name for flag in FLAGS}) == len(FLAGS)
    assert len({environment_name(flag) for flag in FLAGS}) == len(FLAGS)


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_row_explains_itself(flag: Flag) -> None:
    assert flag.help.endswith(".")
    assert not (flag.ignored and flag.refused)
    assert flag.alias == "" or find(flag.alias) is not None


@pytest.mark.parametrize("flag", [row for row in rows("works") if row.values[0].option])
def test_a_flag_that_works_lands_in_its_option(flag: Flag) -> None:
    text, expected = sample(flag)
    before = [] if flag.option == "repository.paths" else ["models"]
    before += COMPANIONS.get(flag.name, [])
    landed: Any = parse_flags([*before, f"--{flag.name}={text}"], {})
    for name in flag.option.split("."):
        landed = getattr(landed, name)
    assert landed == expected


@pytest.mark.parametrize("flag", rows("ignored"))
def test_an_ignored_flag_gives_one_notice(flag: Flag) -> None:
    text, _ = sample(flag)
    assert parse_flags(["models", f"--{flag.name}={text}"], {}).notices == (
        f"--{flag.name} is ignored: {flag.ignored}",
    )


@pytest.mark.parametrize("flag", rows("refused"))
def test_a_refused_flag_is_refused_by_name(flag: Flag) -> None:
    text, _ = sample(flag)
    with pytest.raises(ConfigError, match=f"--{flag.name}") as caught:
        parse_flags(["models", f"--{flag.name}={text}"], {})
    assert flag.refused in str(caught.value)


@pytest.mark.parametrize("flag", [row for row in rows("refused") if row.values[0].default not in ((), "")])
def test_a_refused_flag_may_repeat_its_default(flag: Flag) -> None:
    default = str(flag.default).lower()
    assert parse_flags(["models", f"--{flag.name}={default}"], {}).notices == ()


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if not flag.option and flag.status == "works"], ids=str)
def test_a_flag_without_option_has_its_own_parser(flag: Flag) -> None:
    own_form = {"rate-limit-resource", "http-restricted-api", "grpc-restricted-protocol"}
    own_form |= {"trusted-proxies", "cors-origins", "allowed-hosts", "api-key", "api-key-file", "api-key-open"}
    assert flag.name in own_form or any(row.flag == flag.name for row in SETTINGS)
