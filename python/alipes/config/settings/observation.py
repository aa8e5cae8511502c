"""Settings of what can be seen from outside: metrics and traces."""

from __future__ import annotations

from typing import Final

from alipes.config.settings.setting import Setting

__all__ = ["METRICS", "TRACES"]

_METRICS: Final = "metrics-config"
_TRACE: Final = "trace-config"
_OTEL: Final = "opentelemetry"

METRICS: Final = (
    Setting(
        _METRICS,
        "",
        "counter_latencies",
        "bool",
        True,
        "Show the nv_inference_*_duration_us counters.",
        option="counter_latencies",
    ),
    Setting(
        _METRICS,
        "",
        "histogram_latencies",
        "bool",
        False,
        "Show Triton's histogram of the time to the first response.",
        option="histogram_latencies",
    ),
    Setting(
        _METRICS,
        "",
        "summary_latencies",
        "bool",
        False,
        "Show quantiles of latencies.",
        option="summary_latencies",
    ),
    Setting(
        _METRICS,
        "",
        "summary_quantiles",
        "str",
        "0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001",
        "The quantiles to show. Their errors are read and not used: values are off by one per cent at most.",
        option="summary_quantiles",
    ),
    Setting(
        _METRICS,
        "",
        "request_histograms",
        "bool",
        True,
        "Show the alipes_inference_* histograms. Not a setting of Triton.",
        option="request_histograms",
    ),
)

TRACES: Final = (
    Setting(
        _TRACE,
        "",
        "mode",
        "choice",
        "triton",
        "Where traces go: `triton` writes Triton's trace file, `opentelemetry` sends spans to a collector.",
        option="trace.mode",
        choices=("triton", _OTEL),
    ),
    Setting(
        _TRACE,
        "",
        "level",
        "list",
        (),
        "What is recorded: OFF, TIMESTAMPS, TENSORS; may be given several times. Spans have no tensors.",
        option="trace.level",
    ),
    Setting(
        _TRACE,
        "",
        "rate",
        "int",
        1000,
        "Trace one request in `rate`; 0 with `opentelemetry` traces only requests that ask for it.",
        option="trace.rate",
    ),
    Setting(_TRACE, "", "count", "int", -1, "Requests to trace; -1 for any number.", option="trace.count", low=-1),
    Setting(_TRACE, "triton", "file", "str", "", "The trace file.", option="trace.file"),
    Setting(
        _TRACE,
        "triton",
        "log-frequency",
        "int",
        0,
        "Number of traces in each file, `<file>.<number>`; 0 writes all into one.",
        option="trace.log_frequency",
    ),
    Setting(
        _TRACE,
        _OTEL,
        "url",
        "str",
        "http://localhost:4318/v1/traces",
        "Where the collector takes OTLP over HTTP, encrypted where this begins with https://; without a scheme "
        "it is http://.",
        option="trace.url",
    ),
    Setting(
        _TRACE,
        _OTEL,
        "certificate",
        "str",
        "",
        "File of the roots that an encrypted collector's certificate leads to, as PEM; those that the system trusts "
        "where not given. OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE and OTEL_EXPORTER_OTLP_CERTIFICATE are read too. "
        "Not a setting of Triton.",
        option="trace.certificate",
    ),
    Setting(
        _TRACE,
        _OTEL,
        "resource",
        "list",
        (),
        "Attributes of the server in spans, `<key>=<value>`; may be given several times. OTEL_RESOURCE_ATTRIBUTES is "
        "read too. service.name is triton-inference-server by default.",
        option="trace.resource",
    ),
    Setting(
        _TRACE,
        _OTEL,
        "bsp_max_queue_size",
        "int",
        2048,
        "Spans that wait at most; also OTEL_BSP_MAX_QUEUE_SIZE.",
        option="trace.max_queue_size",
        low=1,
    ),
    Setting(
        _TRACE,
        _OTEL,
        "bsp_schedule_delay",
        "int",
        5000,
        "Longest time until spans are sent, in milliseconds; also OTEL_BSP_SCHEDULE_DELAY.",
        option="trace.schedule_delay_ms",
        low=1,
    ),
    Setting(
        _TRACE,
        _OTEL,
        "bsp_max_export_batch_size",
        "int",
        512,
        "Spans that are sent at once at most, no more than may wait; also OTEL_BSP_MAX_EXPORT_BATCH_SIZE.",
        option="trace.max_export_batch_size",
        low=1,
    ),
)
