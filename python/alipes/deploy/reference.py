"""The reference page of descriptions, from the types and their docstrings; `python -m` this module writes it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from alipes.deploy.description import Description

__all__ = ["page", "values"]

PAGE: Final = "docs/reference/deployment.md"

_HEAD: Final = """\
# What a deployment says

The values of `alipes deploy kubernetes`, `helm`, `compose` and `systemd`: in a file for `--values`, which is also the
`values.yaml` of the Helm chart, or one by one with `--set NAME=VALUE`. Another name, another type and a value out of
its bounds are errors with their place. What only a cluster has is said on [its page](../how-to/kubernetes.md).

| value | by default | what it is |
|---|---|---|
"""


class Value(NamedTuple):
    """One value of a description: its dotted name, its default, and what it is."""

    name: str
    default: Any
    text: str


def values(part: type[msgspec.Struct] = Description, prefix: str = "") -> Iterator[Value]:
    """All values of a description, in its order."""
    texts = dict(re.findall(r"^    (\w+): (.*(?:\n        .*)*)", inspect.getdoc(part) or "", re.MULTILINE))
    for field in msgspec.structs.fields(part):
        default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        if isinstance(default, msgspec.Struct):
            yield from values(type(default), f"{prefix}{field.encode_name}.")
        else:
            yield Value(prefix + field.encode_name, default, re.sub(r"\s+", " ", texts[field.name]))


def page() -> str:
    """The text of the page."""
    return _HEAD + "".join(
        f"| `{value.name}` | `{json.dumps(value.default)}` | {value.text.rstrip('.')} |\n" for value in values()
    )


if __name__ == "__main__":
    (Path(__file__).resolve().parents[3] / PAGE).write_text(page(), encoding="utf-8")
