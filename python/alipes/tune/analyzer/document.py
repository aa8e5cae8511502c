"""The options of Model Analyzer's YAML and command line by name, with the kinds of values that they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

from alipes.errors import ConfigError, Unsupported
from alipes.tune.knobs import Value

__all__ = ["OptionsDocument"]

_MAX_FILE_BYTES: Final = 1 << 20


class OptionsDocument:
    """Options by name; errors name the file.

    Attributes:
        path: The file; none where a command line says all.
    """

    def __init__(self, options: Mapping[str, Any], path: Path | None) -> None:
        """Takes both."""
        self._options = options
        self.path = path

    @classmethod
    def read(cls, path: Path | None, options: Mapping[str, Any]) -> Self:
        """The options of a file, in front of which those of a command line go.

        Raises:
            Unsupported: If PyYAML is not installed.
            ConfigError: If it is no such file.
        """
        return cls({**(_document(path) if path is not None else {}), **options}, path)

    def __iter__(self) -> Iterator[str]:
        """The names of the options."""
        return iter(self._options)

    def get(self, option: str, own: Any = None) -> Any:
        """A value as it was read, or another where there is none."""
        return self._options.get(option, own)

    def models(self, option: str) -> dict[str, Mapping[str, Any]]:
        """Names with their own options: a text with commas, a list of names or of mappings, or one mapping."""
        named = self.get(option) or []
        if isinstance(named, str):
            named = [name.strip() for name in named.split(",")]
        found: dict[str, Mapping[str, Any]] = {}
        for one in named if isinstance(named, list) else [named]:
            if isinstance(one, str):
                found[one] = {}
            elif isinstance(one, dict) and all(isinstance(spec, dict | None) for spec in one.values()):
                found |= {str(name): spec or {} for name, spec in one.items()}
            else:
                raise self.wrong(option, "has names of models, or names with their options", one)
        return found

    def numbers(self, option: str, values: Any) -> list[Value]:
        """A number, a text with commas, a list, or a range with `start`, `stop` and `step`."""
        if isinstance(values, str):
            values = [int(part) if part.strip().isdecimal() else part for part in values.split(",")]
        if isinstance(values, dict) and values.keys() <= {"start", "stop", "step"} and "stop" in values:
            ends = [values.get("start", 0), values["stop"], values.get("step", 1)]
            if all(isinstance(one, int) for one in ends) and ends[2] > 0:
                values = list(range(ends[0], ends[1] + 1, ends[2]))
        found = values if isinstance(values, list) else [values]
        if not found or not all(isinstance(one, int) and not isinstance(one, bool) for one in found):
            raise self.wrong(option, "is a number, a list, or start, stop and step", values)
        return found

    def number(self, option: str, own: int) -> int:
        """A whole number, or another where there is none."""
        value = self.get(option, own)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(option, "is a whole number", value)
        return value

    def text(self, option: str, own: str | None) -> str:
        """A text, or another where there is none; without either it is refused."""
        value = self.get(option, own)
        if not isinstance(value, str) or not value:
            raise self.wrong(option, "is a text", value)
        return value

    def wrong(self, option: str, expected: str, value: object) -> ConfigError:
        """The error of an option with a value that it does not take, or without the one that it needs."""
        if value is None:
            flag = f"--{option.replace('_', '-')}"
            return ConfigError(
                f"option '{option}' is not given, which {expected}: write it into the file, or give {flag}",
                path=self.path,
                key=option,
            )
        return ConfigError(f"option '{option}' {expected}, not {str(value)[:80]!r}", path=self.path, key=option)


def _document(path: Path) -> dict[str, Any]:
    try:
        yaml: Any = import_module("yaml")
    except ImportError as error:
        raise Unsupported("Model Analyzer's files need PyYAML: pip install 'alipes[tune]'") from error
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_FILE_BYTES + 1)
        if len(text) > _MAX_FILE_BYTES:
            raise ConfigError(f"the file is longer than the limit of {_MAX_FILE_BYTES:,} characters", path=path)
        document = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {' '.join(str(error).split())}", path=path) from error
    if not isinstance(document, dict):
        raise ConfigError("expected options by name", path=path)
    return document
