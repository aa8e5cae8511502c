"""How large the response cache is, from the flag for caches and from the older one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from alipes.config.settings import read_settings
from alipes.errors import ConfigError

__all__ = ["read_cache"]

_FLAG: Final = "cache-config"
_OLDER: Final = "response-cache-byte-size"
_LOCAL: Final = "local"


def read_cache(values: Sequence[str], older_bytes: int, *, older_set: bool) -> int:
    """The bytes of answers that the server keeps; 0 where it keeps none.

    Args:
        values: The values of `--cache-config`, in the order given.
        older_bytes: The value of `--response-cache-byte-size`.
        older_set: Whether that flag was set.

    Raises:
        ConfigError: If a value has another form, names another cache, or both flags are given.
    """
    if not values:
        return older_bytes
    if older_set:
        raise ConfigError(
            f"Error: Incompatible flags --{_OLDER} and --{_FLAG} both provided. Please provide one or the other.",
            key=_FLAG,
        )
    caches = {text.partition(",")[0] for text in values if "," in text}
    if len(caches) > 1:
        raise ConfigError(
            "found multiple cache configurations, but only a single cache is currently supported",
            key=_FLAG,
            hint=f"'{_LOCAL}' keeps answers in the server's memory",
        )
    for text in values:
        cache, comma, _ = text.partition(",")
        if not comma or not cache:
            raise ConfigError(
                f'Bad option: "--{_FLAG}".\nNo cache specified. --{_FLAG} option format is '
                f"<cache name>,<setting>=<value>. Got {text}",
                key=_FLAG,
            )
        if cache != _LOCAL:
            raise ConfigError(
                f"Bad option: \"--{_FLAG}\".\nthere is no cache '{cache}'",
                key=_FLAG,
                hint=f"'{_LOCAL}' keeps answers in the server's memory",
            )
    settings, _ = read_settings(_FLAG, values)
    return int(str(settings["response_cache_bytes"]))
