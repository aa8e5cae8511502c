"""The reference pages of descriptions, from the types and their docstrings; `python -m` this module writes them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from alipes.deploy.description import Description
from alipes.deploy.kserve.description import KServe

__all__ = ["PAGES", "page", "values"]

PAGES: Final[dict[str, type[msgspec.Struct]]] = {
    "docs/reference/deployment.md": Description,
    "docs/reference/kserve-values.md": KServe,
}
"""The pages, each with what it is about."""

_HEADS: Final[dict[type[msgspec.Struct], str]] = {
    Description: """\
# What a deployment says

The values of `alipes deploy kubernetes`, `helm`, `compose` and `systemd`: in a file for `--values`, which is also the
`values.yaml` of the Helm chart, or one by one with `--set NAME=VALUE`. Another name, another type and a value out of
its bounds are errors with their place. What only a cluster has is said on [its page](../how-to/kubernetes.md).
""",
    KServe: """\
# What a deployment on KServe says

The values of `alipes deploy kserve`: in a file for `--values`, or one by one with `--set NAME=VALUE`. Other names,
other types, values out of their bounds and values that do not go together are errors, all of them at once, each with
its place. `[]` stands for each of a list, and `NAME` for each name.
[Serve with KServe](../how-to/serve-with-kserve.md) has examples.
""",
}
_TABLE: Final = "\n| value | by default | what it is |\n|---|---|---|\n"


class Value(NamedTuple):
    """One value of a description: its dotted name, its default in JSON, and what it is."""

    name: str
    default: str
    text: str


def values(part: type[msgspec.Struct], prefix: str = "") -> Iterator[Value]:
    """All values of a description, in its order."""
    texts = dict(re.findall(r"^    (\w+): (.*(?:\n        .*)*)", inspect.getdoc(part) or "", re.MULTILINE))
    types = get_type_hints(part)
    for field in msgspec.structs.fields(part):
        name = prefix + field.encode_name
        default = _default(field)
        if isinstance(default, msgspec.Struct):
            yield from values(type(default), f"{name}.")
            continue
        text = "needed" if default is msgspec.NODEFAULT else f"`{json.dumps(default)}`"
        yield Value(name, text, re.sub(r"\s+", " ", texts[field.name]))
        for suffix, inner in _parts(types[field.name]):
            yield from values(inner, f"{name}{suffix}.")


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _parts(declared: Any) -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """The parts that a value may have or hold, each with what stands between the two names."""
    if isinstance(declared, type) and issubclass(declared, msgspec.Struct):
        yield "", declared
        return
    between = {tuple: "[]", dict: ".NAME"}.get(get_origin(declared), "")
    for argument in get_args(declared):
        yield from ((between + suffix, inner) for suffix, inner in _parts(argument))


def page(part: type[msgspec.Struct]) -> str:
    """The text of a page."""
    rows = "".join(f"| `{value.name}` | {value.default} | {value.text.rstrip('.')} |\n" for value in values(part))
    return _HEADS[part] + _TABLE + rows


if __name__ == "__main__":
    for path, described in PAGES.items():
        (Path(__file__).resolve().parents[3] / path).write_text(page(described), encoding="utf-8")
