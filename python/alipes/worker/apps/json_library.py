"""msgspec, which an environment of a user's own may lack."""

from __future__ import annotations

from alipes.errors import ConfigError

try:
    import msgspec
except ModuleNotFoundError as missing:
    raise ConfigError("a function with a JSON endpoint needs msgspec: pip install msgspec") from missing

__all__ = ["msgspec"]
