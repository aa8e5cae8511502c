"""What of a configuration a loaded version can take over, and what it has to be built again for.

Source: Triton, which updates a model in place where nothing but its instance groups or its version policy changed.
"""

from __future__ import annotations

from typing import Final

from alipes.config.platforms import ENSEMBLE
from alipes.config.schema import ModelConfig, copy_config, new_config

__all__ = ["lasting_part", "movable_part"]

_MOVABLE: Final = ("instance_group", "version_policy")


def lasting_part(config: ModelConfig) -> bytes:
    """All that a version is built from: while it is the same, the version is the same.

    Of an ensemble that is everything: it costs next to nothing to build.
    """
    made = copy_config(config)
    if config.platform == ENSEMBLE:
        return bytes(made.SerializeToString(deterministic=True))
    for name in _MOVABLE:
        if name != "instance_group" or not _is_special(config):
            made.ClearField(name)
    return bytes(made.SerializeToString(deterministic=True))


def _is_special(config: ModelConfig) -> bool:
    """Whether some instances are passive or take resources: the number of instances is not all there is to change."""
    return any(group.passive or group.rate_limiter.resources for group in config.instance_group)


def movable_part(config: ModelConfig) -> bytes:
    """The rest, which a loaded version can take over."""
    made = new_config()
    made.instance_group.extend(config.instance_group)
    made.version_policy.CopyFrom(config.version_policy)
    return bytes(made.SerializeToString(deterministic=True))
