"""The tables of `parameters` that a snapshotter or an averager may carry: their sizes, in samples.

Listed tensors fix most of these values; then parameters are needed only for values that follow from no tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from alipes.config.parameters import Parameter
from alipes.config.values import read_int
from alipes.errors import ConfigError

__all__ = ["AVERAGER_PARAMETERS", "SNAPSHOTTER_PARAMETERS", "StreamingParameters", "read_streaming_parameters"]

_MAX_SAMPLES: Final = 2**31 - 1
"""Largest size in samples: no message carries more bytes."""

_BATCH: Final = "of a request; 1 where neither this nor the tensors say it."

SNAPSHOTTER_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("stride_size", "count", "works", "New samples of each window."),
    Parameter("snapshot_size", "count", "works", "Samples of a window."),
    Parameter("batch_size", "count", "works", f"Windows {_BATCH}"),
    Parameter(
        "channels",
        "text",
        "works",
        "Outputs and their channels, such as `strain:2,witness`: windows of a name without a number have no axis for "
        "channels. Not needed where outputs are listed.",
    ),
)

AVERAGER_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("update_size", "count", "works", "Samples by which each prediction is ahead of the one before it."),
    Parameter("num_updates", "count", "works", "Predictions that make a mean; always needed."),
    Parameter("batch_size", "count", "works", f"Predictions {_BATCH}"),
    Parameter("kernel_size", "count", "works", "Samples of a prediction. Not needed where the input is listed."),
    Parameter("channels", "count", "works", "Channels of a prediction; without it there is no axis for them."),
    Parameter(
        "unbiased_start",
        "switch",
        "works",
        "1 makes the first means those of the predictions that there are; else those that never came count as zero.",
    ),
)


@dataclass(frozen=True, slots=True)
class StreamingParameters:
    """What a model's parameters say.

    Attributes:
        sizes: Key to number; a switch is 0 or 1.
        texts: Key to text, of those that are no numbers.
        notices: One line for each unknown parameter.
    """

    sizes: Mapping[str, int]
    texts: Mapping[str, str]
    notices: tuple[str, ...]


def read_streaming_parameters(
    rows: Sequence[Parameter], parameters: Mapping[str, str], name: str
) -> StreamingParameters:
    """Read a model's parameters.

    Args:
        rows: Those that there are.
        parameters: Key to text, as in the configuration.
        name: The model's name, for messages.

    Raises:
        ConfigError: If a size is no positive number.
    """
    known = {row.key: row for row in rows}
    bounds = {"count": (1, _MAX_SAMPLES), "switch": (0, 1)}
    sizes = {
        key: _number(key, text, name, *bounds[_kind(known, key)])
        for key, text in parameters.items()
        if _kind(known, key) in bounds
    }
    texts = {key: text for key, text in parameters.items() if _kind(known, key) == "text"}
    unknown = (key for key in sorted(parameters) if key not in known)
    notices = (f"parameter '{key}' of model '{name}' is ignored: the backend knows no such key" for key in unknown)
    return StreamingParameters(sizes, texts, tuple(notices))


def _kind(known: Mapping[str, Parameter], key: str) -> str:
    return known[key].kind if key in known else ""


def _number(key: str, text: str, name: str, low: int, high: int) -> int:
    value = read_int(text, low, high)
    if value is None:
        raise ConfigError(
            f"parameter '{key}' of model '{name}' must be an integer from {low} to {high}, got '{text}'",
            key=f"parameters.{key}",
        )
    return value
