"""What `alipes serve` says about a command line that it cannot take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from alipes.errors import ConfigError

__all__ = ["flag_mistake"]

_SHARED: Final = re.compile(r'Bad option: "(?P<flag>.+)"\.\n')
"""How messages begin that both forms of the command line share."""

_USUAL_FOLDERS: Final = ("models", "model_repository", "model-repository", "repository")


def flag_mistake(error: ConfigError) -> str:
    """The text for a person: what Triton's server would say in other words, and everything else as it is."""
    text = str(error)
    if match := _SHARED.match(text):
        flag, rest = match["flag"], text[match.end() :]
        reason = rest.removeprefix("not supported: ")
        return f"{flag}: {rest}" if reason == rest else f"leave {flag} out: {reason}"
    if error.key == "model-repository":
        return _no_repository()
    if error.key == "load-model":
        return _load_model(text)
    if text.startswith("The server cannot listen to"):
        return f"give one of them another port: {text[:1].lower()}{text[1:]}"
    return text


def _no_repository() -> str:
    found = next((name for name in _USUAL_FOLDERS if Path(name).is_dir()), None)
    first = f"did you mean alipes serve {found}?" if found else "name a folder of models: alipes serve FOLDER"
    return (
        f"{first}\n"
        "a model has a folder in it, such as FOLDER/digits/1/model.onnx\n"
        "an empty one serves nothing, or what comes later: --model-control-mode=poll"
    )


def _load_model(text: str) -> str:
    if "Wildcard" in text:
        return "leave out the other --load-model: '*' stands for all models"
    return "add --model-control-mode=explicit: without it every model is loaded, and --load-model\nhas no use"
