"""A module with a typed method for each function and model of a server: what `alipes client generate` writes."""

from __future__ import annotations

import json
import keyword
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from alipes.client.function import Function, FunctionArgument
from alipes.client.signature import Signature

__all__ = ["client_module"]

_WIDTH: Final = 88
"""Columns of a line, as formatters have it by default."""

_OWN: Final = frozenset({"client", "close", "self"})
"""Names that the class has itself."""

_STEPS: Final = ("before", "main", "after")
"""Models that a function with steps becomes beside itself; nobody calls them."""

_HEAD: Final = '''"""Functions and models of {address}.

Written by `alipes client generate`: run it again when they have changed.
"""

from __future__ import annotations

{imports}

import numpy as np
import numpy.typing as npt
from alipes import Client

Array = npt.NDArray[np.generic]


class {name}:
    """Calls each by a method of its name."""

    def __init__(self, address: str = "{address}", **options: Any) -> None:
        """Takes what `alipes.Client` takes."""
        self.client = Client(address, **options)

    def __enter__(self) -> {name}:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self.client.close()
'''


@dataclass(frozen=True)
class _Parameter:
    """One parameter of a method.

    Attributes:
        text: As the method declares it.
        passed: As the call passes it.
    """

    text: str
    passed: str


def client_module(signatures: Iterable[Signature], address: str, name: str = "Models") -> str:
    """The source of the module.

    Args:
        signatures: Of all models of the server.
        address: Where it is asked, unless the user of the class says otherwise.
        name: Name of the class.
    """
    known = {one.model: one for one in signatures}
    shown = [one for model, one in sorted(known.items()) if not _is_step(model, known)]
    methods = "".join(f"\n{_method(one)}" for one in shown)
    return _HEAD.format(address=address, name=name, imports=_imports(methods)) + methods


def _imports(methods: str) -> str:
    names = ["Any", *(["Literal"] if "Literal[" in methods else [])]
    lines = ["from collections.abc import Iterator"] if "Iterator[" in methods else []
    return "\n".join([*lines, f"from typing import {', '.join(names)}"])


def _is_step(model: str, known: Iterable[str]) -> bool:
    function, dot, step = model.rpartition(".")
    return bool(dot) and step in _STEPS and function in known


def _method(signature: Signature) -> str:
    function = signature.function
    if function is None:
        return _model_method(signature)
    parameters = [_parameter(one) for one in sorted(function.arguments.values(), key=lambda one: not one.required)]
    result = f"Iterator[{function.result}]" if function.is_stream else function.result
    summary = function.summary or f"Calls the function {function.name}."
    if any(not _is_name(name) for name in function.arguments):
        parameters = [_Parameter("**arguments: Any", "**arguments")]
    text = _definition(_identifier(function.name), parameters, result)
    text += _docstring(summary)
    return text + _returned(function.name, parameters, result, _left_out(function))


def _model_method(signature: Signature) -> str:
    names = [one.name for one in signature.inputs.values()]
    required = sorted(names, key=lambda name: name not in signature.required)
    parameters = [
        _Parameter(
            f"{name}: npt.ArrayLike" if name in signature.required else f"{name}: npt.ArrayLike | None = None",
            f"{name}={name}",
        )
        for name in required
    ]
    if not all(map(_is_name, names)):
        parameters = [_Parameter("**inputs: npt.ArrayLike", "**inputs")]
    result = "Array" if len(signature.outputs) == 1 else "dict[str, Array]"
    inputs = ", ".join(f"{one.name} {one.datatype}{list(one.shape)}" for one in signature.inputs.values())
    text = _definition(_identifier(signature.model), parameters, result)
    text += _docstring(f"Asks the model {signature.model}: {inputs}.")
    optional = [name for name in names if name not in signature.required] if all(map(_is_name, names)) else []
    return text + _returned(signature.model, parameters, result, optional)


def _parameter(one: FunctionArgument) -> _Parameter:
    kind = one.type.replace("Array", "npt.ArrayLike")
    if one.required:
        text = f"{one.name}: {kind}"
    elif one.has_default:
        text = f"{one.name}: {kind} = {_literal(one.default)}"
    else:  # only the function knows its default
        text = f"{one.name}: {kind} | None = None"
    return _Parameter(text, f"{one.name}={one.name}")


def _literal(value: Any) -> str:
    """A value of JSON as formatters have it in Python: texts in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(one)}' for key, one in value.items())}}}"
    return repr(value)


def _left_out(function: Function) -> list[str]:
    """Arguments that are not passed where they are None: the function has a default that nobody else knows."""
    return [name for name, one in function.arguments.items() if not one.required and not one.has_default]


def _definition(name: str, parameters: Sequence[_Parameter], result: str) -> str:
    parts = ["self", *(one.text for one in parameters)]
    return "\n".join(_bracketed(f"    def {name}(", parts, f") -> {result}:")) + "\n"


def _docstring(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"""', "'''")
    lines = textwrap.wrap(plain, _WIDTH - 8 - 6, break_long_words=False) or [plain]
    if len(lines) == 1:
        return f'        """{lines[0]}"""\n'
    rest = "\n".join(f"        {line}" for line in lines[1:])
    return f'        """{lines[0]}\n{rest}\n        """\n'


def _returned(model: str, parameters: Sequence[_Parameter], result: str, optional: Sequence[str]) -> str:
    passed = [one.passed for one in parameters if one.passed.partition("=")[0] not in optional]
    lines = []
    if optional:
        lines.append("        more: dict[str, Any] = {}")
        for name in optional:
            lines += [f"        if {name} is not None:", f'            more["{name}"] = {name}']
        passed.append("**more")
    is_any = result == "Any"
    head = "        return self.client.call(" if is_any else f"        value: {result} = self.client.call("
    lines += _bracketed(head, [f'"{model}"', *passed], ")")
    return "\n".join([*lines, *([] if is_any else ["        return value"])]) + "\n"


def _bracketed(head: str, parts: Sequence[str], tail: str) -> list[str]:
    """A bracket as formatters break it: in one line, its content in one line, or a line for each part."""
    indent = " " * (len(head) - len(head.lstrip()))
    content = ", ".join(parts)
    if len(head) + len(content) + len(tail) <= _WIDTH:
        return [f"{head}{content}{tail}"]
    if len(indent) + 4 + len(content) <= _WIDTH:
        return [head, f"{indent}    {content}", f"{indent}{tail}"]
    return [head, *(f"{indent}    {part}," for part in parts), f"{indent}{tail}"]


def _identifier(name: str) -> str:
    found = re.sub(r"\W", "_", name)
    if not found[:1].isalpha():
        found = f"model_{found}"
    return f"{found}_" if keyword.iskeyword(found) or found in _OWN else found


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name != "self"
