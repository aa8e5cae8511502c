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
from alipes.worker.frameworks.pytorch.nesting import RESULT, leaves

__all__ = ["Arguments", "InputBinding", "OutputBinding", "Results", "bind_inputs", "bind_outputs"]

_NUMBERED: Final = re.compile(r".+__(\d{1,9})")

_KEYED: Final = re.compile(r"KWARGS\[?(\w+)\]?")
"""A named argument: Triton 2.70 writes the name without brackets."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a module takes.

    Attributes:
        names: Its arguments in order.
        required: How many of them it needs, from the first on.
        paths: What Triton calls each of them, such as `ARGS[0][key]`, where the file says how they nest.
        datatypes: The datatype of each of them, where nothing but this says it; empty where that is not known.
        sizes: Sizes of the axes of each that are fixed, likewise.
        texts: Whether each of them is a list of text; `None` where the file does not say.
        dictionary: Whether its one argument is a dictionary of tensors.
        unlimited: Whether it takes any number of further ones.
    """

    names: tuple[str, ...]
    required: int = 0
    paths: tuple[str, ...] = ()
    datatypes: tuple[str, ...] = ()
    sizes: tuple[Mapping[int, int], ...] = ()
    texts: tuple[bool, ...] | None = None
    dictionary: bool = False
    unlimited: bool = False

    def takes_text(self, name: str) -> bool | None:
        """Whether an argument is a list of text; `None` where the file does not say."""
        return self.texts[self.names.index(name)] if self.texts is not None and name in self.names else None


@dataclass(frozen=True, slots=True)
class Results:
    """What a module gives.

    Attributes:
        count: How many results there are; `None` where that is seen when it runs.
        keys: What they are called, where it gives a dictionary whose keys are known.
        leaf_paths: What Triton calls each of them, such as `RESULT[key][0]`, where the file says how they nest.
    """

    count: int | None = None
    keys: tuple[str, ...] = ()
    leaf_paths: tuple[str, ...] = ()


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
        if isinstance(found, Mapping) and all(name in found for name in self.positions):
            return {name: found[name] for name in self.positions}
        by_path = dict(leaves(found, RESULT))
        if all(name in by_path for name in self.positions):
            return {name: by_path[name] for name in self.positions}
        found = list(by_path.values())
        missing = [name for name, position in self.positions.items() if position >= len(found)]
        if missing:
            raise ValueError(f"the model gave {len(found)} results, and none of them is output '{missing[0]}'")
        return {name: found[position] for name, position in self.positions.items()}


def bind_inputs(
    opening: Opening, names: Sequence[str], arguments: Arguments, further: Sequence[str] = ()
) -> InputBinding:
    """Finds the argument of each input.

    Args:
        opening: The opening.
        names: The inputs that requests have.
        arguments: What the module takes.
        further: Inputs that the server fills in, controls and states of sequences: none of them goes by its order.

    Raises:
        LoadError: If inputs and arguments do not fit each other.
    """
    if arguments.dictionary:
        return InputBinding((), dictionary=True)
    known, every = arguments.names, [*names, *further]
    positions = _argument_positions(opening, names, further, arguments)
    top = max(positions.values(), default=-1)
    if top >= len(known) and not arguments.unlimited:
        raise opening.refuse(
            f"the configuration has {len(every)} inputs ({_listed(every)}), the model's forward takes "
            f"{len(known)}: {_listed(known)}; name inputs like these arguments, or INPUT__0, INPUT__1 in their "
            "order"
        )
    extra = [f"argument {position}" for position in range(len(known), top + 1)]
    pairs = {[*known, *extra][position]: name for name, position in positions.items()}
    missing = [name for name in known[: arguments.required] if name not in pairs]
    if missing:
        raise opening.refuse(
            f"the model's forward needs '{missing[0]}', which no input of the configuration is: it has "
            f"{_listed(every)}; name inputs like the arguments ({_listed(known)}), or INPUT__0, INPUT__1 in their order"
        )
    order = sorted(pairs.items(), key=lambda pair: known.index(pair[0]) if pair[0] in known else len(known))
    return InputBinding(tuple(order))


def _argument_positions(
    opening: Opening, names: Sequence[str], further: Sequence[str], arguments: Arguments
) -> dict[str, int]:
    """The position of the argument that each input is: by what its name says, or by the order where no name does.

    Raises:
        LoadError: If some names say one thing and the order another, or a control or state would go by its order.
    """
    found = {name: _named_position(name, arguments) for name in (*names, *further)}
    named = {name: position for name, position in found.items() if position is not None}
    if len(named) == len(found) == len(set(named.values())):
        return named
    ordered = {name: position for position, name in enumerate(found)}
    unnamed = next((name for name in further if name not in named), None)
    if (
        unnamed is None
        and len(set(named.values())) == len(named)
        and all(ordered[name] == named[name] for name in named)
    ):
        return ordered
    if unnamed is None and len(named) == len(found) and not set(names) & set(arguments.names):
        return ordered  # such as A__0 and B__0: the numbers are no positions
    called = unnamed or next((name for name in found if name not in named), next(iter(found)))
    raise opening.refuse(
        f"which argument '{called}' is cannot be told: name each input, control and state like an argument of forward "
        f"({_listed(arguments.names)}), or let its name end in the number of the argument, such as {called}__0"
    )


def _named_position(name: str, arguments: Arguments) -> int | None:
    """The position that a name says: it is an argument's own, Triton's path of one, or ends in its number."""
    for named in (arguments.names, arguments.paths):
        if name in named:
            return named.index(name)
    keyed = _KEYED.fullmatch(name)
    if keyed is not None and keyed[1] in arguments.names and arguments.paths:
        return arguments.names.index(keyed[1])
    numbered = _NUMBERED.fullmatch(name)
    position = int(numbered[1]) if numbered is not None else None
    return position if position is not None and (position < len(arguments.names) or arguments.unlimited) else None


def bind_outputs(opening: Opening, names: Sequence[str], results: Results) -> OutputBinding:
    """Finds the position of each output.

    Raises:
        LoadError: If an output is none of the results.
    """
    for named in (results.keys, results.leaf_paths):
        if named and set(names) <= set(named):
            return OutputBinding({name: named.index(name) for name in names})
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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
