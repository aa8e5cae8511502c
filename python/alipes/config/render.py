"""Writes a configuration as Triton answers it: protobuf's JSON with every default, and 64-bit sizes as numbers."""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any, Final

from alipes.config.schema import ModelConfig, is_map, is_repeated

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

__all__ = ["config_json"]

_STRINGS: Final = frozenset(
    {
        "inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.dim",
        "inference.ModelInstanceGroup.SecondaryDevice.device_id",
    }
)
"""The 64-bit fields that keep protobuf's form, a string; every other one is a number."""

_NEWER: Final = frozenset({"inference.ModelEnsembling.max_inflight_requests"})
"""Fields that came after the release whose answers these are: they show where they are set."""

_WHOLE_BELOW: Final = 1e15
"""Whole numbers below this are written without fraction or exponent."""


def config_json(config: ModelConfig) -> str:
    """The body of `GET /v2/models/<model>/config`.

    Fields stand in the order of the proto file; a sub-message that is not set is absent, an empty list or map is not.
    """
    return json.dumps(_message(config), ensure_ascii=False, separators=(",", ":"))


def _message(message: ModelConfig) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if is_map(field):
            element = field.message_type.fields_by_name["value"]
            made[field.name] = {_key(key): _value(element, value[key]) for key in sorted(value)}
        elif is_repeated(field):
            made[field.name] = [_value(field, one) for one in value]
        elif field.full_name in _NEWER and not value:
            continue
        elif not field.has_presence or message.HasField(field.name):
            made[field.name] = _value(field, value)
    return made


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return _message(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if isinstance(value, float):
        return _number(field, value)
    return str(value) if field.full_name in _STRINGS else value


def _key(key: Any) -> str:
    return str(key)


def _number(field: FieldDescriptor, value: float) -> Any:
    """A float in its shortest form; what is no number as the word that protobuf's JSON uses."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if field.type == field.TYPE_FLOAT:
        value = _shortest(value)
    is_whole = value.is_integer() and abs(value) < _WHOLE_BELOW
    # An integer cannot be the negative zero.
    return int(value) if is_whole and (value != 0 or math.copysign(1, value) > 0) else value


def _shortest(value: float) -> float:
    """The number with the fewest digits that is the same single-precision float: 0.3 instead of 0.30000001192092896."""
    single = struct.Struct("f")
    numbers = (float(f"{value:.{digits}g}") for digits in range(6, 9))
    return next((number for number in numbers if single.unpack(single.pack(number))[0] == value), value)
