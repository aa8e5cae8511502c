"""Which tensor of the protocol is which argument and which result of a module.

Source: the naming rules of Triton's PyTorch backend. Names are those of the arguments; else they end in `__<position>`,
such as `INPUT__0`; else they count in the order of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from alipes.worker.frameworks.opened import Opening

__all__ = ["Arguments", "InputBinding", "OutputBinding", "Results", "bind_inputs", "bind_outputs"]

_NUMBERED: Final = re.compile(r".+__(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a module takes.

    Attributes:
        names: Its arguments in order.
        required: How many of them it needs, from the first on.
        dictionary: Whether its one argument is a dictionary of tensors.
        unlimited: Whether it takes any number of further ones.
    """

    names: tuple[str, ...]
    required: int = 0
    dictionary: bool = False
    unlimited: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """What a module gives.

    Attributes:
        count: How many results there are; `None` where that is seen when it runs.
        keys: What they are called, where it gives a dictionary whose keys are known.
    """

    count: int | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputBinding:
    """The inputs in the order of the arguments.

    Attributes:
        order: Argument and input, pair by pair.
        dictionary: Whether the inputs are the entries of the one argument.
    """

    order: tuple[tuple[str, str], ...]
    dictionary: bool = False

    def arguments(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments; an optional input that is missing leaves the module's default."""
        if self.dictionary:
            return [dict(values)], {}
        found: list[Any] = []
        named: dict[str, Any] = {}
        gap = False
        for argument, name in self.order:
            if name not in values:
                gap = True
            elif gap:
                named[argument] = values[name]
            else:
                found.append(values[name])
        return found, named


@dataclass(frozen=True, slots=True)
class OutputBinding:
    """Where the outputs are among a module's results.

    Attributes:
        positions: Position of each output; used where the module gives no dictionary with these names.
    """

    positions: Mapping[str, int]

    def results(self, found: Any) -> dict[str, Any]:
        """The result for each output.

        Raises:
            ValueError: If there is none for an output.
        """
        if isinstance(found, Mapping):
            if all(name in found for name in self.positions):
                return {name: found[name] for name in self.positions}
            found = list(found.values())
        elif _is_one(found):
            found = [found]
        missing = [name for name, position in self.positions.items() if position >= len(found)]
        if missing:
            raise ValueError(f"the model gave {len(found)} results, and none of them is output '{missing[0]}'")
        return {name: found[position] for name, position in self.positions.items()}


def bind_inputs(opening: Opening, names: Sequence[str], arguments: Arguments) -> InputBinding:
    """Finds the argument of each input.

    Raises:
        LoadError: If inputs and arguments do not fit each other.
    """
    if arguments.dictionary:
        return InputBinding((), dictionary=True)
    known = arguments.names
    if set(names) <= set(known):
        pairs = {name: name for name in names}
    else:
        positions = _positions(names)
        top = max(positions.values(), default=-1)
        if top >= len(known) and not arguments.unlimited:
            raise opening.refuse(
                f"the configuration has {len(names)} inputs ({_listed(names)}), the model's forward takes "
                f"{len(known)}: {_listed(known)}; name inputs like these arguments, or INPUT__0, INPUT__1 in their "
                "order"
            )
        extra = [f"argument {position}" for position in range(len(known), top + 1)]
        pairs = {[*known, *extra][position]: name for name, position in positions.items()}
    missing = [name for name in known[: arguments.required] if name not in pairs]
    if missing:
        raise opening.refuse(
            f"the model's forward needs '{missing[0]}', which no input of the configuration is: it has "
            f"{_listed(names)}; name inputs like the arguments ({_listed(known)}), or INPUT__0, INPUT__1 in their order"
        )
    order = sorted(pairs.items(), key=lambda pair: known.index(pair[0]) if pair[0] in known else len(known))
    return InputBinding(tuple(order))


def bind_outputs(opening: Opening, names: Sequence[str], results: Results) -> OutputBinding:
    """Finds the position of each output.

    Raises:
        LoadError: If an output is none of the results.
    """
    if results.keys and set(names) <= set(results.keys):
        return OutputBinding({name: results.keys.index(name) for name in names})
    positions = _positions(names)
    if results.count is not None:
        missing = [name for name, position in positions.items() if position >= results.count]
        if missing:
            known = f" ({_listed(results.keys)})" if results.keys else ""
            raise opening.refuse(
                f"the configuration has output '{missing[0]}', the model's forward gives {results.count} "
                f"result{'s' if results.count != 1 else ''}{known}; outputs are called OUTPUT__0, OUTPUT__1 in their "
                "order"
            )
    return OutputBinding(positions)


def _positions(names: Sequence[str]) -> dict[str, int]:
    """By the numbers that names end in, where all do, and differently; else in their order."""
    numbered = [_NUMBERED.fullmatch(name) for name in names]
    positions = [int(found[1]) for found in numbered if found is not None]
    if len(positions) == len(names) == len(set(positions)):
        return dict(zip(names, positions, strict=True))
    return {name: position for position, name in enumerate(names)}


def _is_one(found: Any) -> bool:
    """Whether a module gave one result: a tensor, or a list of text."""
    return not isinstance(found, (list, tuple)) or (bool(found) and all(isinstance(one, str) for one in found))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
