"""What a person names to be served: `app.py`, `app.py:name` or `package.module:name`, rather than a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from alipes.errors import ConfigError

__all__ = ["Target", "is_app", "target_of"]

_FILE: Final = re.compile(r"(?P<file>.+\.py)(?::(?P<name>[A-Za-z_][\w.-]*))?")
_MODULE: Final = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_][\w.-]*)")


@dataclass(frozen=True, slots=True)
class Target:
    """An app that is named.

    Attributes:
        text: As it was typed.
        file: Its file, absolute; empty where it is a module.
        module: Its module; empty where it is a file.
        root: Folder in which modules are looked for: the current one.
        name: The one model that is wanted; empty for all.
        served_as: Another name for the only model that is wanted; empty for its own.
    """

    text: str
    file: str = ""
    module: str = ""
    root: str = ""
    name: str = ""
    served_as: str = ""

    def document(self) -> dict[str, str]:
        """What the process that describes the app reads."""
        place = {"file": self.file, "module": self.module, "root": self.root, "name": self.name}
        return place | ({"served_as": self.served_as} if self.served_as else {})


def is_app(text: str) -> bool:
    """Whether a word names an app; a folder of that name is a repository all the same."""
    if "://" in text or Path(text).is_dir():
        return False
    return _FILE.fullmatch(text) is not None or _MODULE.fullmatch(text) is not None


def target_of(text: str) -> Target:
    """The app that a word names.

    Raises:
        ConfigError: If there is no such file.
    """
    if match := _FILE.fullmatch(text):
        file = Path(match["file"]).expanduser().absolute()
        if not file.is_file():
            raise ConfigError(_absent(file, match["file"]), key="model-repository")
        return Target(text, file=str(file), name=match["name"] or "")
    match = _MODULE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text} is no app: name a file, app.py, or a module with a model, package.module:name")
    return Target(text, module=match["module"], root=str(Path.cwd()), name=match["name"])


def _absent(file: Path, text: str) -> str:
    from alipes.config.nearest import ALIKE, nearest  # the right name needs no advice

    beside = {one.stem: one for one in file.parent.glob("*.py")} if file.parent.is_dir() else {}
    close = nearest(file.stem, beside, ALIKE)
    if close is None:
        return f"there is no file {text}; alipes init writes a first app"
    return f"did you mean {Path(text).with_name(beside[close].name)}? There is no file {text}"
