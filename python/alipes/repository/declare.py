"""What an export says of its inputs and outputs, held against what the configuration says already.

| configuration | given | what happens |
|---|---|---|
| has none | nothing | refused |
| has none | by name | declared in that order |
| has none | in order | declared as `input_0`, `input_1`, ... |
| has some | nothing | nothing changes |
| has some | by name | the names are the same, and so is each shape and datatype, or it is refused |
| has some | in order | the same, position by position |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, Literal, TypeAlias

from alipes import _core
from alipes.config.datatypes import INVALID, config_number, v2_name, v2_names
from alipes.config.nearest import nearest
from alipes.config.schema import ModelConfig as Message
from alipes.errors import ConfigError, ExportError
from alipes.repository.tensors import ANY, Shape, describe_shape, model_shape, put_shape, to_dims

__all__ = ["Shapes", "Side", "add_tensor", "datatype_number", "declare", "v2_synonyms"]

Side = Literal["input", "output"]
Sizes: TypeAlias = Iterable[int | None]
Shapes: TypeAlias = "Mapping[str, Sizes] | Sequence[Sizes] | None"

# Further names that torch, ONNX and Python have for datatypes, beside numpy's.
_SYNONYMS: Final = {
    "half": "FP16",
    "float": "FP32",
    "double": "FP64",
    "bfloat16": "BF16",
    "str": "BYTES",
    "string": "BYTES",
}


@cache
def v2_synonyms() -> dict[str, str]:
    """The V2 name for each name that numpy, torch, ONNX or Python has for a datatype."""
    return _SYNONYMS | {row.numpy_name: row.name for row in _core.datatypes() if row.numpy_name is not None}


def datatype_number(name: object) -> int:
    """The number of a datatype: `FP32`, `TYPE_FP32`, `float32`, `numpy.float32` and `torch.float32` are the same.

    Raises:
        ConfigError: If nothing of that name exists.
    """
    word = getattr(name, "__name__", None) if isinstance(name, type) else str(name)
    word = str(word).removeprefix("torch.").removeprefix("TYPE_")
    v2 = v2_synonyms().get(word.lower(), word.upper())
    number = config_number(v2)
    if word.lower().startswith("complex"):
        raise ConfigError(
            f"{word} has no datatype in the protocol: take and return real and imaginary parts, as torch.view_as_real "
            "gives them, or magnitude and phase",
            key="data_type",
        )
    if number == INVALID:
        known = v2_names()
        close = nearest(v2, known)
        hint = f"did you mean '{close}'?" if close else None
        raise ConfigError(f"unknown datatype '{word}', expected one of {', '.join(known)}", key="data_type", hint=hint)
    return number


def add_tensor(config: Message, side: Side, name: str, shape: Sizes, datatype: object = "FP32") -> Message:
    """Declare one more input or output.

    Args:
        config: The configuration, changed in place.
        side: `input` or `output`.
        name: Its name; none that the side has.
        shape: Its sizes with the batch axis; None, 0 and -1 stand for any.
        datatype: Its element type.

    Returns:
        The declaration itself, to change further.

    Raises:
        ConfigError: If the name is taken or empty, a size makes no sense, or a batching model's batch axis is fixed.
    """
    if not name or not isinstance(name, str):
        raise ConfigError(f"an {side} of model '{config.name}' needs a name, got {name!r}", key=f"{side}.name")
    if any(tensor.name == name for tensor in getattr(config, side)):
        raise ConfigError(f"model '{config.name}' has an {side} '{name}' already", key=f"{side}.name")
    sizes = _checked(config, side, name, shape)
    tensor = getattr(config, side).add(name=name, data_type=datatype_number(datatype))
    put_shape(config, tensor, sizes)
    return tensor


def declare(config: Message, side: Side, exported: Shapes, datatypes: Mapping[str, object] | Sequence[object]) -> None:
    """Declare the inputs or outputs of an export, or check that they are those declared before.

    Args:
        config: The configuration, changed in place.
        side: `input` or `output`.
        exported: Shapes by name or in order; None for those of the configuration.
        datatypes: Element types by name or in order; FP32 for those left out.

    Raises:
        ExportError: If there is nothing to go by, or what is given differs from what was declared.
    """
    declared = list(getattr(config, side))
    if exported is None:
        if not declared:
            hint = "; such as input_shapes={'x': (None, 64)}, where None is the batch" if side == "input" else ""
            raise ExportError(f"Must specify {side} shapes: model '{config.name}' has no {side}s yet{hint}")
        exported = {tensor.name: model_shape(config, tensor) for tensor in declared}
    shapes = _by_name(config, side, exported, declared)
    types = datatypes if isinstance(datatypes, Mapping) else dict(zip(shapes, datatypes, strict=False))
    if not declared:
        for name, shape in shapes.items():
            add_tensor(config, side, name, shape, types.get(name, "FP32"))
        return
    for tensor in declared:
        _check_same(config, side, tensor, shapes[tensor.name], types.get(tensor.name))


def _by_name(config: Message, side: Side, exported: Shapes, declared: Sequence[Message]) -> dict[str, Sizes]:
    names = [tensor.name for tensor in declared]
    if isinstance(exported, Mapping):
        if names and set(exported) != set(names):
            raise ExportError(
                f"model '{config.name}' has the {side}s {_listed(names)}, the export gives {_listed(exported)}; "
                f"a model's {side}s stay the same from version to version"
            )
        return dict(exported)
    assert exported is not None
    shapes = list(exported)
    if names and len(shapes) != len(names):
        raise ExportError(
            f"model '{config.name}' has {len(names)} {side}s, {_listed(names)}, the export gives {len(shapes)}"
        )
    return dict(zip(names or [f"{side}_{index}" for index in range(len(shapes))], shapes, strict=True))


def _check_same(config: Message, side: Side, tensor: Message, shape: Sizes, datatype: object) -> None:
    before, now = to_dims(model_shape(config, tensor)), to_dims(shape)
    # A scalar is declared as one element.
    if before != (now or [1]):
        raise ExportError(
            f"{side} '{tensor.name}' of model '{config.name}' was declared with shape {describe_shape(before)}, the "
            f"export gives {describe_shape(now)}"
        )
    if datatype is not None and datatype_number(datatype) != tensor.data_type:
        raise ExportError(
            f"{side} '{tensor.name}' of model '{config.name}' was declared as {v2_name(tensor.data_type)}, the export "
            f"gives {v2_name(datatype_number(datatype))}"
        )


def _checked(config: Message, side: Side, name: str, shape: Sizes) -> Shape:
    called = f"{side} '{name}' of model '{config.name}'"
    if isinstance(shape, str | bytes) or not isinstance(shape, Iterable):
        raise ConfigError(f"the shape of {called} is {shape!r}; expected sizes such as (None, 64)", key=f"{side}.dims")
    sizes = list(shape)
    wrong = [
        one for one in sizes if one is not None and (isinstance(one, bool) or not isinstance(one, int) or one < -1)
    ]
    if wrong:
        raise ConfigError(
            f"{called} has size {wrong[0]!r}; expected a whole number, or None for any", key=f"{side}.dims"
        )
    if config.max_batch_size > 0 and (not sizes or to_dims(sizes)[0] != ANY):
        raise ConfigError(
            f"{called} has shape {describe_shape(sizes)}, but the model batches (max_batch_size is "
            f"{config.max_batch_size}): its first axis must be None",
            key=f"{side}.dims",
        )
    return tuple(sizes)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
