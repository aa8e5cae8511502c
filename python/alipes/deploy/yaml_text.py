"""YAML, read safely and written so that people like to read it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from alipes.errors import ConfigError, Unsupported

__all__ = ["documents_of", "yaml_of"]


def _yaml() -> Any:
    try:
        return import_module("yaml")
    except ImportError as error:
        raise Unsupported("this needs PyYAML: install it with `pip install 'alipes[deploy]'`") from error


def yaml_of(documents: Iterable[Any]) -> str:
    """One text with all documents, keys in the order in which they were written."""
    yaml = _yaml()

    class Dumper(yaml.SafeDumper):  # type: ignore[misc, name-defined]
        """Lists are set in, as most people write them, and nothing is an alias."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            return super().increase_indent(flow, False)

        def ignore_aliases(self, _data: Any) -> bool:
            return True

    style = {"sort_keys": False, "default_flow_style": False, "width": 1000, "allow_unicode": True}
    return str(yaml.dump_all(documents, Dumper=Dumper, **style))


def documents_of(text: str, path: str) -> list[Any]:
    """The documents of a text, without empty ones.

    Raises:
        ConfigError: If it is no YAML; with the file and the line.
    """
    yaml = _yaml()
    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise ConfigError(f"this is no YAML: {getattr(error, 'problem', error)}", path=path, line=line) from error
