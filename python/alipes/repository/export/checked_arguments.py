"""The arguments of `Model.export_version`, checked where they come in: errors name the argument and a right value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any, Final

from alipes.config.nearest import nearest
from alipes.errors import ExportError

if TYPE_CHECKING:
    from alipes.repository.declare import Shapes, Sizes

__all__ = ["checked_names", "checked_options", "checked_shapes", "unknown_option"]

# Options of every export, each with what it may be and an example.
_OPTIONS: Final = {
    "examples": "arrays by input name or in order: examples={'x': array}",
    "input_dtypes": "datatypes by input name or in order: input_dtypes={'x': 'int64'}",
}

_ARGUMENTS: Final = ("input_shapes", "output_names", "version", "max_batch_size", "verbose", "progress")

# What other libraries call an argument.
_SYNONYMS: Final = {
    "shapes": "input_shapes",
    "shape": "input_shapes",
    "inputs": "input_shapes",
    "input_shape": "input_shapes",
    "outputs": "output_names",
    "output_name": "output_names",
    "dtypes": "input_dtypes",
    "dtype": "input_dtypes",
    "example_inputs": "examples",
    "batch_size": "max_batch_size",
    "max_batch": "max_batch_size",
}


def checked_shapes(model: str, shapes: Shapes) -> Shapes:
    """Shapes by name or in order, with sizes that are Python's numbers or None.

    Args:
        model: Name of the model, for messages.
        shapes: What was passed as `input_shapes`.

    Raises:
        ExportError: If it is something else.
    """
    if shapes is None:
        return None
    if isinstance(shapes, Mapping):
        wrong = [name for name in shapes if not isinstance(name, str)]
        if not shapes or wrong:
            raise _wrong_shapes(model, shapes)
        return {name: _sizes(model, f"of '{name}' ", shape) for name, shape in shapes.items()}
    if not isinstance(shapes, Sequence) or isinstance(shapes, str | bytes) or not shapes:
        raise _wrong_shapes(model, shapes)
    if any(size is None or _is_whole(size) for size in shapes):
        example = f"{{'x': {tuple(shapes)!r}}}"
        raise ExportError(
            f"export of model '{model}': input_shapes is {shapes!r}, one shape without a name; expected shapes by "
            f"name, such as input_shapes={example}"
        )
    return [_sizes(model, f"{at} ", shape) for at, shape in enumerate(shapes)]


def checked_names(model: str, names: Iterable[str] | None) -> list[str] | None:
    """Names of outputs; one name may stand alone.

    Raises:
        ExportError: If they are no names, or two are the same.
    """
    if names is None:
        return None
    ordered = isinstance(names, Iterable) and not isinstance(names, Mapping | set | frozenset)
    listed = [names] if isinstance(names, str) else list(names) if ordered else []
    if not listed or not all(isinstance(name, str) and name for name in listed):
        raise ExportError(
            f"export of model '{model}': output_names is {names!r}; expected names in order, such as "
            "output_names=['prob']"
        )
    if len(set(listed)) != len(listed):
        raise ExportError(f"export of model '{model}': output names {listed} are not all different")
    return listed


def checked_options(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that every export has.

    Raises:
        ExportError: If one of them is of a wrong type.
    """
    for name, expected in _OPTIONS.items():
        value = options.get(name)
        if value is not None and not isinstance(value, Mapping | list | tuple):
            raise ExportError(f"export of model '{model}': {name} is a {type(value).__name__}; expected {expected}")
    check = options.get("check", True)
    if not isinstance(check, bool) and check != "warn":
        raise ExportError(f"export of model '{model}': check is {check!r}; expected True, False or 'warn'")
    tolerance = options.get("tolerance")
    if tolerance is not None and (isinstance(tolerance, bool) or not isinstance(tolerance, Real) or tolerance < 0):
        raise ExportError(f"export of model '{model}': tolerance is {tolerance!r}; expected a number such as 1e-3")
    return {name: options[name] for name in (*_OPTIONS, "check", "tolerance") if name in options}


def unknown_option(model: str, platform: str, name: str, takes: Iterable[str]) -> ExportError:
    """The error for an option that an exporter does not have, with the one that was probably meant."""
    further = sorted(takes)
    known = [*_ARGUMENTS, *_OPTIONS, "check", "tolerance", *further]
    meant = _SYNONYMS.get(name) or nearest(name, known)
    hint = f"did you mean '{meant}'? " if meant else ""
    return ExportError(
        f"export of model '{model}' as {platform}: unknown option '{name}'; {hint}"
        f"further options: {', '.join(further) or 'none'}"
    )


def _sizes(model: str, which: str, shape: object) -> Sizes:
    if isinstance(shape, str | bytes) or not isinstance(shape, Iterable):
        raise ExportError(
            f"export of model '{model}': in input_shapes, the shape {which}is {shape!r}; expected sizes, with None for "
            "the batch, such as (None, 64)"
        )
    sizes = tuple(shape)
    wrong = [size for size in sizes if size is not None and not _is_whole(size)]
    if wrong:
        raise ExportError(
            f"export of model '{model}': in input_shapes, the shape {which}has size {_shortened(wrong[0])}; expected "
            "whole numbers, with None for the batch, such as (None, 64)"
        )
    return tuple(None if size is None else index(size) for size in sizes)


def _is_whole(size: object) -> bool:
    if isinstance(size, bool):
        return False
    try:
        index(size)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _wrong_shapes(model: str, shapes: object) -> ExportError:
    return ExportError(
        f"export of model '{model}': input_shapes is {_shortened(shapes)}; expected shapes by name, such as "
        "input_shapes={'x': (None, 64)}, or a list of shapes"
    )


def _shortened(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
