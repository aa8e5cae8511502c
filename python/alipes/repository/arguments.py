"""Arguments of a wrong type, refused by name where they come in."""

from __future__ import annotations

from alipes.errors import ExportError, RepositoryUseError

__all__ = ["WrongArgument", "check_type", "check_version"]


class WrongArgument(RepositoryUseError, TypeError):
    """An argument is of a type that a call cannot use; the message says which argument, and what it takes."""


def check_type(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Check the type of an argument.

    Args:
        name: What the argument is called.
        value: What was passed.
        kinds: The types that it may have.
        expected: What they mean, for the message: `the name of a model`.

    Raises:
        WrongArgument: If it has none of them.
    """
    if not isinstance(value, kinds):
        raise WrongArgument(f"{name} is {_shortened(value)}, of type {type(value).__name__}; expected {expected}")


def check_version(model: str, version: object) -> None:
    """Check the number that a version is to get.

    Raises:
        ExportError: If it is none.
    """
    if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 1):
        raise ExportError(f"version {version!r} of model '{model}': expected a whole number from 1 on")


def _shortened(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
