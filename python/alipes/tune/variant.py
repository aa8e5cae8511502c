"""A repository with changed configurations beside the one that is tuned, whose files stay as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from alipes.config.pbtxt import to_pbtxt
from alipes.config.render import config_json
from alipes.config.schema import ModelConfig, copy_config
from alipes.tune.knobs import KNOBS, Value
from alipes.tune.models import TunedModel
from alipes.tune.point import Point

__all__ = ["changed", "provisional", "write_variant"]

REVERT_AFTER: Final = "load.revert_after_s"
"""The parameter of such a configuration."""


def changed(config: ModelConfig, values: Mapping[str, Value]) -> ModelConfig:
    """A configuration with other values.

    Raises:
        ConfigError: If the model cannot have one of them.
    """
    made = copy_config(config)
    for knob in KNOBS.values():
        if knob.name in values and knob.write is not None:
            knob.write(made, values[knob.name])
    return made


def provisional(config: ModelConfig, seconds: float) -> str:
    """A configuration for a load request after which the model goes back, unless it is loaded so again in time."""
    document = json.loads(config_json(config))
    parameters = {**document.get("parameters", {}), REVERT_AFTER: {"string_value": f"{seconds:g}"}}
    return json.dumps({**document, "parameters": parameters})


def write_variant(folder: Path, models: Mapping[str, TunedModel], point: Point) -> None:
    """Fills an empty folder: each model's files as links, and its configuration with the values of the point.

    Raises:
        ConfigError: If a model cannot have one of the values.
    """
    for model in models.values():
        if model.folder is None:
            continue
        place = folder / model.name
        place.mkdir()
        values = point.of_model(model.name)
        for entry in model.folder.iterdir():
            if entry.name != "config.pbtxt" or not values:
                (place / entry.name).symlink_to(entry.resolve())
        if values:
            (place / "config.pbtxt").write_text(to_pbtxt(changed(model.written, values)), encoding="utf-8")
