"""Flags on what can be seen from outside: metrics, log and traces."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.encryption import NOT_TRITONS, encryption
from alipes.config.flags.flag import MAX_PORT, UNIX, Flag

__all__ = ["LOG", "METRICS", "TRACING"]

METRICS: Final[tuple[Flag, ...]] = (
    Flag("allow-metrics", "bool", True, "Offer metrics.", option="metrics.enabled", common=True),
    Flag(
        "metrics-address",
        "str",
        None,
        f"Address of the metrics endpoint; the HTTP address where not given, 127.0.0.1 where that is a path. {UNIX}.",
        option="metrics.address",
    ),
    Flag(
        "metrics-port",
        "int",
        8002,
        "Port of the metrics endpoint; 0 asks the system for one.",
        high=MAX_PORT,
        option="metrics.port",
        common=True,
    ),
    *encryption("metrics", "metrics", note=NOT_TRITONS),
    Flag(
        "allow-cpu-metrics",
        "bool",
        True,
        "Show the nv_cpu_* gauges, and the processor time of the server and its workers.",
        option="cpu_metrics",
    ),
    Flag(
        "allow-gpu-metrics",
        "bool",
        True,
        "Show the nv_gpu_* gauges, where there is a GPU.",
        option="gpu_metrics.enabled",
    ),
    Flag(
        "metrics-interval-ms",
        "int",
        2000,
        "Milliseconds between two readings of the GPUs; other gauges are read when they are asked for.",
        option="gpu_metrics.interval_ms",
    ),
    Flag(
        "turn-clock",
        "choice",
        "wall",
        "What the turns of network threads are measured in, see the metrics: `wall` is time that passes; `cpu` is time "
        "of the processor, which what else the machine does leaves alone, at some cost. Not a flag of Triton.",
        choices=("wall", "cpu"),
        option="turn_clock",
    ),
    Flag("metrics-config", "list", (), "Setting of the metrics, `<key>=<value>`; see the table of settings."),
)

LOG: Final[tuple[Flag, ...]] = (
    Flag(
        "log-verbose",
        "level",
        0,
        "Level of verbose messages; 0 turns them off.",
        high=16,
        option="log.verbose_level",
    ),
    Flag("log-info", "bool", True, "Write informational messages.", option="log.info"),
    Flag("log-warning", "bool", True, "Write warnings.", option="log.warning"),
    Flag("log-error", "bool", True, "Write errors.", option="log.error"),
    Flag(
        "log-format",
        "choice",
        "default",
        "Form of a line: Triton's own, with the time as ISO 8601 has it, or a JSON document (not one of Triton's).",
        choices=("default", "ISO8601", "JSON"),
        option="log.format",
        common=True,
    ),
    Flag(
        "log-file",
        "str",
        "",
        "File to write to; standard error where not given.",
        option="log.file",
        common=True,
        path="file",
    ),
)

TRACING: Final[tuple[Flag, ...]] = (
    Flag(
        "trace-config",
        "list",
        (),
        "Setting of tracing, `<key>=<value>` or `<mode>,<key>=<value>`; see the table of settings.",
    ),
    Flag("trace-file", "str", "", "Older form of --trace-config triton,file.", option="trace.file", path="file"),
    Flag("trace-level", "list", (), "Older form of --trace-config level.", option="trace.level"),
    Flag("trace-rate", "int", 1000, "Older form of --trace-config rate.", option="trace.rate"),
    Flag("trace-count", "int", -1, "Older form of --trace-config count.", option="trace.count", low=-1),
    Flag(
        "trace-log-frequency",
        "int",
        0,
        "Older form of --trace-config triton,log-frequency.",
        option="trace.log_frequency",
    ),
)
