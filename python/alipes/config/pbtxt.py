"""Reads `config.pbtxt`: protobuf's text format, with the place of what is wrong and the nearest known field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from alipes.config.nearest import nearest
from alipes.config.paths import kind_of, read_regular
from alipes.config.schema import ModelConfig, new_config, pool
from alipes.config.text_tokens import TokenError, as_cpp_reads
from alipes.errors import ConfigError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

__all__ = ["parse_pbtxt", "read_config", "to_pbtxt"]

_UNKNOWN_FIELD = re.compile(r'Message type "(?P<message>[^"]+)" has no field named "(?P<field>[^"]+)"')
_UNKNOWN_VALUE = re.compile(r'Enum type "(?P<enum>[^"]+)" has no value named (?P<value>\w+)')


def read_config(folder: Path, config_name: str = "") -> ModelConfig | None:
    """Read a model's configuration file.

    Args:
        folder: The model's folder.
        config_name: Name of the file under `configs/` to prefer where it exists; empty for none.

    Returns:
        The configuration as written; None where there is no file.

    Raises:
        ConfigError: If the file cannot be read; path and line say where.
    """
    path = folder / "config.pbtxt"
    if config_name and kind_of(named := folder / "configs" / f"{config_name}.pbtxt") == "file":
        path = named
    try:
        text = read_regular(path)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"failed to read text proto from {path}: {error}", path=path) from error
    return parse_pbtxt(text, path)


def parse_pbtxt(text: str, path: Path | None = None) -> ModelConfig:
    """Read a configuration in text format.

    Raises:
        ConfigError: If the text is no configuration: with the place, and the nearest known field for an unknown one.
    """
    from google.protobuf import text_format

    config = new_config()
    try:
        text_format.Parse(as_cpp_reads(text), config)
    except TokenError as error:
        line = text.count("\n", 0, error.offset) + 1
        raise _failure(path, line, error.offset - text.rfind("\n", 0, error.offset), str(error)) from error
    except text_format.ParseError as error:
        raise _explained(error, path) from error
    except ValueError as error:  # the parser does not look at numbers of enumerations, whose messages have 32 bits
        offset = _place_of(str(error).rpartition(" ")[2], text)
        line = text.count("\n", 0, offset) + 1
        raise _failure(path, line, offset - text.rfind("\n", 0, offset), str(error)) from error
    return config


def to_pbtxt(config: ModelConfig) -> str:
    """A configuration as the text of a `config.pbtxt`."""
    from google.protobuf import text_format

    return str(text_format.MessageToString(config))


def _place_of(number: str, text: str) -> int:
    """Where a number stands in a text, decimal or hexadecimal; the text's beginning where it is not found."""
    written = re.finditer(r"(?<!\w)-?(0[xX][0-9a-fA-F]+|[1-9]\d*)", text)
    return next((match.start() for match in written if int(match[0], 0) == int(number)), 0)


def _explained(error: Exception, path: Path | None) -> ConfigError:
    line, column = getattr(error, "GetLine", int)(), getattr(error, "GetColumn", int)()
    message = re.sub(r"^\d+:\d+ : ", "", str(error)).strip()
    # The parser quotes the line first; what is wrong stands after the last colon that follows the quotation.
    quoted = re.match(r"'.*?': (.*)", message, re.DOTALL)
    return _failure(path, line, column, (quoted[1] if quoted else message).rstrip("."))


def _failure(path: Path | None, line: int, column: int, what: str) -> ConfigError:
    key, hint = _hint(what)
    place = f" {path}" if path else ""
    return ConfigError(
        f"failed to read text proto from{place or ' the text'}: {line}:{column}: {what}",
        path=path,
        line=line,
        key=key,
        hint=hint,
    )


def _hint(what: str) -> tuple[str | None, str | None]:
    """The field or value at fault and the nearest one that exists."""
    if match := _UNKNOWN_FIELD.search(what):
        message: Descriptor = pool().FindMessageTypeByName(match["message"])
        close = nearest(match["field"], message.fields_by_name)
        return match["field"], f"did you mean '{close}'?" if close else None
    if match := _UNKNOWN_VALUE.search(what):
        enum = pool().FindEnumTypeByName(match["enum"])
        close = nearest(match["value"], enum.values_by_name)
        return match["value"], f"did you mean '{close}'?" if close else None
    return None, None
