"""The configuration file of a server: `alipes.toml`, every flag as a key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from alipes.config.flag_text import FlagText
from alipes.config.flags import SERVE_FLAGS, Flag, find_for_serve
from alipes.config.nearest import nearest
from alipes.errors import ConfigError

__all__ = ["FILE_NAME", "read_file"]

FILE_NAME: Final = "alipes.toml"
"""The file that `alipes serve` reads where the current folder has it."""

_REPOSITORY: Final = "repository"
"""The key for what stands on the command line by itself."""

_WITHOUT: Final = "config"
"""The one flag that no file may hold."""

_AT_LINE: Final = re.compile(r" \(at line ([0-9]+), column [0-9]+\)$")


def read_file(path: Path) -> list[FlagText]:
    """The flags that a file gives.

    A key is the name of a flag, with dashes or underscores; `[http]` and `port` below it are `http-port`.

    Raises:
        ConfigError: If it cannot be read, is no TOML, or has a key that is no flag; with its line where it has one.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"the configuration file {path} cannot be read: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no TOML: it is not encoded in UTF-8", path=path) from None
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
        match = _AT_LINE.search(problem)
        line = int(match[1]) if match else None
        reason = problem[: match.start()] if match else problem
        raise ConfigError(f"{_place(path, line)}: this is no TOML: {reason}", path=path, line=line) from None
    return list(_Reader(path, text.splitlines()).read(content))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the content of one file."""

    path: Path
    lines: list[str]

    def read(self, content: Mapping[str, Any], table: str = "") -> Iterator[FlagText]:
        """The flags of a table, which `table` names; empty for the keys above all tables."""
        for key, value in content.items():
            line = self._line(key, table)
            name = "-".join(part.replace("_", "-") for part in (table, key) if part)
            if isinstance(value, dict) and not table:
                yield from self.read(value, key)
            else:
                yield from self._flag(self._find(name, line, table, key), value, f"{_place(self.path, line)}: {name}")

    def _find(self, name: str, line: int | None, table: str, key: str) -> Flag:
        flag = find_for_serve("model-repository" if name == _REPOSITORY else name)
        if flag is not None and flag.name != _WITHOUT:
            return flag
        alone = key.replace("_", "-")
        known = alone == _REPOSITORY or (alone != _WITHOUT and find_for_serve(alone) is not None)
        if table and known and not _is_table(table):
            raise ConfigError(
                f"{_place(self.path, line)}: write {alone} above all tables: there is no table [{table}]; those "
                "that there are begin the names of flags, such as [http] or [log]",
                path=self.path,
                line=line,
                key=name,
            )
        raise ConfigError(
            f"{_place(self.path, line)}: {_guess(name)} no key '{name}'; alipes serve --help-all lists them",
            path=self.path,
            line=line,
            key=name,
        )

    def _flag(self, flag: Flag, value: object, name: str) -> Iterator[FlagText]:
        if isinstance(value, list) and flag.kind != "list":
            raise ConfigError(f"{name} takes one value, not a list", path=self.path, key=flag.name)
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str | bool | int | float):
                raise ConfigError(
                    f"{name} takes a text, a number, true or false; not {_word(one)}", path=self.path, key=flag.name
                )
            text = str(one).lower() if isinstance(one, bool) else str(one)
            yield FlagText(flag, self._path(text) if flag.path else text, name)

    def _path(self, text: str) -> str:
        """A path from where the file lies: the file means the same wherever the command is typed."""
        if not text or "://" in text:
            return text
        return str(self.path.parent / Path(text).expanduser())

    def _line(self, key: str, table: str) -> int | None:
        """The line of a key, counted from 1; None where it is written in a way that this does not look for."""
        inside = ""
        begins = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""")
        header = re.compile(r"""\s*\[\s*["']?([^\]"']+?)["']?\s*\]""")
        for number, line in enumerate(self.lines, start=1):
            if match := header.match(line):
                inside = match[1]
                if not table and inside == key:
                    return number
            elif inside == table and begins.match(line):
                return number
        return None


def _guess(name: str) -> str:
    """What is meant by a key that there is not, and the beginning of the sentence that says so."""
    from alipes.synonyms import synonym  # a right file needs no guesses

    if row := synonym("alipes serve", name):
        hint = row.hint.replace("--", "")  # in a file a flag has no dashes
    else:
        close = nearest(name, [*(row.name for row in SERVE_FLAGS if row.name != _WITHOUT), _REPOSITORY])
        hint = f"did you mean {close}?" if close else ""
    return f"{hint} There is" if hint.endswith("?") else f"{hint}; there is" if hint else "there is"


def _is_table(name: str) -> bool:
    """Whether flags begin with the name of a table."""
    return any(flag.name.startswith(f"{name.replace('_', '-')}-") for flag in SERVE_FLAGS)


def _place(path: Path, line: int | None) -> str:
    return str(path) if line is None else f"{path}:{line}"


def _word(value: object) -> str:
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a date or a time"
