"""The table of settings inside flags: the keys that `--backend-config` and `--metrics-config` take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from alipes.config.flags import Kind, Status, Value
from alipes.config.nearest import nearest
from alipes.config.values import parse_value
from alipes.errors import ConfigError

__all__ = ["SETTINGS", "Setting", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row: a key that a flag takes.

    Attributes:
        flag: The flag that takes it.
        scope: The backend that it belongs to; empty for all of them and for metrics.
        key: The key.
        kind: How its value is read.
        default: Its value where nobody gives one.
        status: Whether it works, is ignored with a notice, or is refused by name.
        help: What it does, in one line.
        note: The notice of an ignored setting, the reason of a refused one.
        option: Where the value lands in `ServerOptions`, as a dotted path.
        low: Smallest integer allowed.
    """

    flag: str
    scope: str = ""
    key: str
    kind: Kind
    default: Value
    status: Status
    help: str
    note: str = ""
    option: str = ""
    low: int = 0


_OWN_THREADS: Final = "each model has threads of its own, set by its parameters"

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        flag="backend-config",
        key="default-max-batch-size",
        kind="int",
        default=4,
        status="works",
        help="Batch size in rows that a completed configuration gets where the model allows batches.",
        option="model.default_max_batch_size",
    ),
    Setting(
        flag="backend-config",
        scope="onnxruntime",
        key="default-max-batch-size",
        kind="int",
        default=None,
        status="works",
        help="The same for ONNX Runtime alone.",
        option="model.onnxruntime_default_max_batch_size",
    ),
    Setting(
        flag="backend-config",
        key="auto-complete-config",
        kind="bool",
        default=True,
        status="ignored",
        help="Set by Triton itself.",
        note="use --disable-auto-complete-config",
    ),
    Setting(
        flag="backend-config",
        key="min-compute-capability",
        kind="str",
        default="6.0",
        status="ignored",
        help="Oldest GPU to use.",
        note="there is no GPU memory to manage",
    ),
    Setting(
        flag="backend-config",
        key="backend-directory",
        kind="str",
        default="",
        status="ignored",
        help="Folder of backend libraries.",
        note="backends are Python packages, found by name",
    ),
    Setting(
        flag="backend-config",
        scope="onnxruntime",
        key="enable-global-threadpool",
        kind="bool",
        default=False,
        status="ignored",
        help="Share one set of threads among models.",
        note=_OWN_THREADS,
    ),
    Setting(
        flag="backend-config",
        scope="onnxruntime",
        key="intra_op_thread_count",
        kind="int",
        default=0,
        status="ignored",
        help="Shared threads within an operator.",
        note=_OWN_THREADS,
    ),
    Setting(
        flag="backend-config",
        scope="onnxruntime",
        key="inter_op_thread_count",
        kind="int",
        default=0,
        status="ignored",
        help="Shared threads across operators.",
        note=_OWN_THREADS,
    ),
    Setting(
        flag="metrics-config",
        key="counter_latencies",
        kind="bool",
        default=True,
        status="works",
        help="Show the nv_inference_*_duration_us counters.",
        option="counter_latencies",
    ),
    Setting(
        flag="metrics-config",
        key="histogram_latencies",
        kind="bool",
        default=False,
        status="refused",
        help="Show a histogram of the time to the first response.",
        note="latency histograms are not offered yet",
    ),
    Setting(
        flag="metrics-config",
        key="summary_latencies",
        kind="bool",
        default=False,
        status="refused",
        help="Show quantiles of latencies.",
        note="latency summaries are not offered yet",
    ),
    Setting(
        flag="metrics-config",
        key="summary_quantiles",
        kind="str",
        default="",
        status="ignored",
        help="The quantiles to show.",
        note="only used with summary_latencies",
    ),
)


def read_settings(flag: str, given: Sequence[str]) -> tuple[dict[str, Value], list[str]]:
    """Take the values of a flag apart.

    Args:
        flag: `backend-config` or `metrics-config`.
        given: The values in the order given, `<key>=<value>` or `<scope>,<key>=<value>`; a later one wins.

    Returns:
        The value of each option that a setting of this flag fills, defaults included, and the notices.

    Raises:
        ConfigError: If a value has another form, names no known key, or asks for what is refused.
    """
    values = {row.option: row.default for row in SETTINGS if row.flag == flag and row.option}
    notices: list[str] = []
    for text in given:
        row, value = _read_setting(flag, text)
        if row is None:
            notices.append(f"--{flag}={text} is ignored: no such backend is offered")
        elif row.status == "ignored":
            notices.append(f"--{flag}={text} is ignored: {row.note}")
        elif row.status == "works":
            values[row.option] = value
        elif value != row.default:
            raise ConfigError(f'Bad option: "--{flag}".\n{row.key} is not supported: {row.note}', key=row.key)
    return values, notices


def _read_setting(flag: str, text: str) -> tuple[Setting | None, Value]:
    """The row and value of one setting; no row for the setting of a backend that is not offered."""
    name, equals, value = text.partition("=")
    scope, _, key = name.rpartition(",")
    if not equals or not key:
        raise ConfigError(f"Bad option: \"--{flag}\".\nexpected <key>=<value>, got '{text}'", key=flag)
    rows = [row for row in SETTINGS if row.flag == flag and row.scope == scope]
    for row in rows:
        if row.key == key:
            return row, parse_value(f"--{flag}", row.kind, value, low=row.low)
    if scope and not rows:
        return None, value
    close = nearest(key, [row.key for row in rows])
    raise ConfigError(
        f"Bad option: \"--{flag}\".\nunknown setting '{name}'",
        key=name,
        hint=f"did you mean '{close}'?" if close else None,
    )
