"""What the server is told about tracing."""

from __future__ import annotations

import re

import pytest
from alipes.config.load import parse_flags
from alipes.config.record_options import TraceOptions
from alipes.errors import ConfigError

COLLECTOR = "mode=opentelemetry"


def read(*settings: str, flags: tuple[str, ...] = (), environ: dict[str, str] | None = None) -> TraceOptions:
    return parse_flags(["models", *(f"--trace-config={setting}" for setting in settings), *flags], environ or {}).trace


def test_nothing_is_traced_by_default() -> None:
    options = read()
    assert (options.mode, options.level, options.rate, options.count) == ("triton", (), 1000, -1)
    assert (options.file, options.log_frequency) == ("", 0)


def test_settings_land_in_their_options() -> None:
    options = read("triton,file=t.json", "triton,log-frequency=3", "rate=5", "count=7", "level=TIMESTAMPS")
    assert (options.file, options.log_frequency, options.rate, options.count) == ("t.json", 3, 5, 7)
    assert options.level == ("TIMESTAMPS",)


@pytest.mark.parametrize(
    ("names", "level"),
    [
        (("off",), ()),
        (("tensors", "Timestamps"), ("TENSORS", "TIMESTAMPS")),
        (("max", "min"), ("TIMESTAMPS",)),
    ],
)
def test_levels_add_up_in_any_case(names: tuple[str, ...], level: tuple[str, ...]) -> None:
    assert read("triton,file=t", *(f"level={name}" for name in names)).level == level


def test_older_flags_mean_the_same_and_settings_win() -> None:
    flags = (
        "--trace-file=old",
        "--trace-level=TENSORS",
        "--trace-rate=2",
        "--trace-count=3",
        "--trace-log-frequency=4",
    )
    options = read(flags=flags)
    assert (options.file, options.level, options.rate, options.count, options.log_frequency) == (
        "old",
        ("TENSORS",),
        2,
        3,
        4,
    )
    assert read("triton,file=new", flags=flags).file == "new"


def test_a_collector_is_described_by_settings_over_the_environment() -> None:
    environ = {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,zone=b%2Cc", "OTEL_BSP_MAX_QUEUE_SIZE": "1000"}
    options = read(COLLECTOR, "opentelemetry,resource=zone=d", environ=environ)
    assert options.resource == (("service.name", "a"), ("zone", "d"))
    assert (options.max_queue_size, options.schedule_delay_ms, options.max_export_batch_size) == (1000, 5000, 512)
    assert read(COLLECTOR).resource == (("service.name", "triton-inference-server"),)
    assert read("opentelemetry,bsp_max_queue_size=700", environ=environ).max_queue_size == 700


def test_a_collector_without_a_scheme_is_reached_over_http() -> None:
    assert read(COLLECTOR, "opentelemetry,url=localhost:4318/v1/traces").url == "http://localhost:4318/v1/traces"


@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        (("opentelemetry,bsp_max_queue_size=1",), {}),
        ((), {"OTEL_BSP_MAX_QUEUE_SIZE": "1"}),
    ],
)
def test_a_short_queue_shortens_what_is_sent_at_once(settings: tuple[str, ...], environ: dict[str, str]) -> None:
    options = read(COLLECTOR, *settings, environ=environ)
    assert (options.max_queue_size, options.max_export_batch_size) == (1, 1)


def test_collector_roots_are_a_setting_over_the_environment() -> None:
    encrypted = (COLLECTOR, "opentelemetry,url=https://x/")
    environ = {"OTEL_EXPORTER_OTLP_CERTIFICATE": "all", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": "traces"}
    assert read(*encrypted).certificate == ""
    assert read(*encrypted, environ=environ).certificate == "traces"
    assert read(*encrypted, environ=dict(list(environ.items())[:1])).certificate == "all"
    assert read(*encrypted, "opentelemetry,certificate=own", environ=environ).certificate == "own"
    assert read(COLLECTOR, environ=environ).certificate == ""


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (("level=ALL",), "invalid value for trace level option: ALL"),
        (("rate=-1",), "expected an integer from 0 to 2147483647, got '-1'"),
        (("count=-2",), "expected an integer from -1 to 2147483647, got '-2'"),
        (("mode=zipkin",), "expected one of triton, opentelemetry, got 'zipkin'"),
        ((COLLECTOR, "opentelemetry,url=ftp://x/"), "url must begin with http:// or https://, got 'ftp://x/'"),
        (
            (COLLECTOR, "opentelemetry,certificate=c"),
            "certificate is for a url that begins with https://, got 'http://",
        ),
        (("opentelemetry,resource=x",), "expected trace-config=opentelemetry,resource=<key>=<value>, got 'x'"),
        (
            (COLLECTOR, "opentelemetry,bsp_max_queue_size=1", "opentelemetry,bsp_max_export_batch_size=2"),
            "bsp_max_export_batch_size must not be larger than",
        ),
        (("triton,log-frequenzy=1",), "unknown setting 'triton,log-frequenzy'"),
    ],
)
def test_what_does_not_fit_is_refused(settings: tuple[str, ...], text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        read(*settings)


def test_what_has_no_effect_gives_a_notice() -> None:
    no_file = parse_flags(["models", "--trace-config=level=TIMESTAMPS"], {}).notices
    assert no_file == ("--trace-config=level has no effect: trace file name is not given",)
    tensors = parse_flags(["models", f"--trace-config={COLLECTOR}", "--trace-config=level=TENSORS"], {})
    assert tensors.notices == ("--trace-config=level=TENSORS is ignored: spans have no tensors",)
    assert tensors.trace.level == ()
