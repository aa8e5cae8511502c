"""The older parameters of ONNX models that tune CUDA, in the words of ONNX Runtime.

Source: Triton's ONNX Runtime backend, "Deprecated Parameters".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from alipes.config.values import read_int
from alipes.errors import ConfigError

__all__ = ["cuda_option"]

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "cudnn_conv_algo_search": ("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
    "arena_extend_strategy": ("kNextPowerOfTwo", "kSameAsRequested"),
    "do_copy_in_default_stream": ("0", "1"),
}
"""What each number stands for. Any other key is a size in bytes."""

_MAX_BYTES: Final = 2**64 - 1


def cuda_option(key: str, text: str, name: str) -> str:
    """The value of a provider's option of the same name.

    Args:
        key: The parameter.
        text: Its text in the configuration.
        name: The model's name, for messages.

    Raises:
        ConfigError: If the value is none that the parameter takes.
    """
    words = _WORDS.get(key)
    number = read_int(text, 0, len(words) - 1 if words else 2**63 - 1)
    if number is not None:
        return words[number] if words else str(number)
    if not words and text == str(_MAX_BYTES):  # how ONNX Runtime says that there is no limit
        return text
    expected = f"an integer from 0 to {len(words) - 1}" if words else "a number of bytes"
    raise ConfigError(f"parameter '{key}' of model '{name}' must be {expected}, got '{text}'", key=f"parameters.{key}")
