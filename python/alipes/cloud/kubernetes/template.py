"""Documents of Kubernetes in files with wildcards: `{{ .Values.name }}` stands for a value that the caller has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from alipes.errors import ConfigError

if TYPE_CHECKING:
    import yaml

__all__ = ["MAX_NODES", "documents_of"]

MAX_NODES: Final = 200_000
"""Most values in a file, counted where they are used: a few lines of aliases can stand for billions."""

_WILDCARD: Final = re.compile(r"\{\{ ?\.Values\.(\w+) ?\}\}")
# What stands for a wildcard while the text is read: a word of YAML that no file has.
_WORD: Final = "alipes-wildcard-{}-end"
_WORDS: Final = re.compile(r"alipes-wildcard-(\d+)-end")


def documents_of(text: str, values: Mapping[str, object], source: str = "template") -> list[dict[str, Any]]:
    """The documents of a file, with values in place of its wildcards.

    A value that stands alone keeps its type: with ``gpus=4`` the field of ``gpus: {{ .Values.gpus }}`` is a number.
    Within quotes or other text it becomes text. No value can change the structure of the file.

    Args:
        text: YAML, or several documents of it.
        values: The values by name.
        source: The name of the file, for messages.

    Raises:
        ConfigError: If a value is missing or unused, or the text is not YAML, or a document is not an object of
            Kubernetes.
    """
    import yaml

    names = list(dict.fromkeys(_WILDCARD.findall(text)))
    # numpy's numbers are not Python's.
    values = {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}
    _check(names, values)
    plain = _WILDCARD.sub(lambda found: _WORD.format(names.index(found[1])), text)
    replacement = _Replacement([values[name] for name in names])
    try:
        documents = [replacement.value(node) for node in yaml.compose_all(plain, yaml.SafeLoader) if node is not None]
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not YAML: {_where(error, text)}") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: nested too deeply") from error
    return [_object(document, source) for document in documents if document is not None]


def _check(names: Iterable[str], values: Mapping[str, object]) -> None:
    for name in names:
        if name not in values:
            raise ConfigError(f"No value provided for wildcard {name}", key=name)
        if not _is_json(values[name]) and not isinstance(values[name], list | dict):
            kind = type(values[name]).__name__
            raise ConfigError(f"the value of wildcard {name} is {kind}, which no file can have", key=name)
    if unused := [name for name in values if name not in names]:
        raise ConfigError(f"Provided unused wildcard values: {', '.join(unused)}", key=unused[0])


class _Replacement:
    """Reads nodes of YAML, with values in the place of wildcards."""

    def __init__(self, values: list[object]) -> None:
        import yaml

        self._values = values
        self._loader = yaml.SafeLoader("")
        self._nodes = 0

    def value(self, node: yaml.Node) -> Any:
        """What a node stands for."""
        import yaml

        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ConfigError(f"more than {MAX_NODES} values, aliases counted where they are used")
        if isinstance(node, yaml.MappingNode):
            self._loader.flatten_mapping(node)
            return {self._key(key): self.value(value) for key, value in node.value}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(one) for one in node.value]
        return self._scalar(node)

    def _key(self, node: yaml.Node) -> str:
        import yaml

        if not isinstance(node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key that is not text", node.start_mark)
        return _text(self.value(node))

    def _scalar(self, node: yaml.Node) -> Any:
        import yaml

        alone = _WORDS.fullmatch(node.value)
        if alone and node.style is None:
            return self._values[int(alone[1])]
        if _WORDS.search(node.value):
            return _WORDS.sub(lambda found: _text(self._values[int(found[1])]), node.value)
        if node.tag == "tag:yaml.org,2002:timestamp":  # Kubernetes reads YAML as JSON, which has no dates: it is text
            return node.value
        try:
            found: object = self._loader.construct_object(node)
        except (ValueError, IndexError, KeyError) as error:  # of a tag, such as !!int, that does not fit
            raise yaml.constructor.ConstructorError(None, None, f"no {node.tag}", node.start_mark) from error
        if not _is_json(found):
            raise yaml.constructor.ConstructorError(None, None, "a value that JSON has not", node.start_mark)
        return found


def _is_json(value: object) -> bool:
    """Whether JSON has a scalar."""
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _text(value: object) -> str:
    """A value within text, as YAML would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _object(document: object, source: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: a document is {type(document).__name__}, not an object of Kubernetes")
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    for field, value in (
        ("apiVersion", document.get("apiVersion")),
        ("kind", document.get("kind")),
        ("metadata.name", name),
    ):
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{source}: a document has no {field}", key=field)
    return document


def _where(error: Any, text: str) -> str:
    """The problem and the line that has it, as it stands in the file."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is None:
        return str(problem)
    lines = text.splitlines()
    line = lines[mark.line].strip() if mark.line < len(lines) else ""
    hint = "; of templates only {{ .Values.name }} is understood: render charts with Helm" if "{{" in line else ""
    return f"{problem}, line {mark.line + 1}: {line}{hint}"
