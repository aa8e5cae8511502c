"""Opens archives of `torch.export`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.opened import Opening, reading
from alipes.worker.frameworks.pytorch.binding import Arguments, Results
from alipes.worker.frameworks.pytorch.module import v2_datatype
from alipes.worker.frameworks.pytorch.nesting import RESULT, leaf_paths, paths_of_arguments, result_names
from alipes.worker.frameworks.pytorch.opened import OpenedFile, safe_pickles

__all__ = ["Program", "open_exported"]

_MOST_SHAPES: Final = 4096
"""Shapes that are remembered; further ones are checked each time."""


def open_exported(opening: Opening) -> OpenedFile:
    """Opens an archive of `torch.export`.

    Raises:
        LoadError: If it cannot be read.
    """
    with reading(opening), safe_pickles(opening):
        program = torch.export.load(str(opening.file))
        if opening.device != "cpu":
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, opening.device)
        return _opened(program)


def _opened(program: Any) -> OpenedFile:
    nodes = {node.name: node for node in program.graph.nodes}
    leaves = [spec.arg for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    inputs = [_port(leaf.name, nodes[leaf.name].meta["val"]) for leaf in leaves if not hasattr(leaf, "value")]
    paths = leaf_paths(program.call_spec.out_spec)
    is_flat = all(path.count("[") <= 1 for path in paths)
    keys = result_names(paths) if not is_flat or program.call_spec.out_spec.type is dict else ()
    values = [node.meta["val"] if hasattr(node, "meta") else node for node in nodes["output"].args[0]]
    results = values[-len(program.graph_signature.user_outputs) :]  # what it keeps comes before what it gives
    outputs = [_port(keys[at] if keys else f"output_{at}", value) for at, value in enumerate(results)]
    names = tuple(port.name for port in inputs)
    called = zip(paths_of_arguments(program.call_spec.in_spec), leaves, strict=True)
    module = _module(program)
    return OpenedFile(
        Program(module, program.call_spec.in_spec, leaves, flattens=not is_flat),
        Arguments(names, required=len(names), paths=tuple(path for path, leaf in called if not hasattr(leaf, "value"))),
        Results(len(outputs), keys, leaf_paths=tuple(f"{RESULT}{path}" for path in paths)),
        signature=Signature(tuple(inputs), tuple(outputs)),
        weights=(*module.parameters(), *module.buffers()),
        owner=module,
    )


def _port(name: str, value: Any) -> Port:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"'{name}' is a {type(value).__name__}; only tensors are served")
    return Port(name, v2_datatype(value.dtype), tuple(size if isinstance(size, int) else ANY for size in value.shape))


class Program:
    """Calls an exported program with its tensors one by one, whatever its arguments are made of.

    torch checks the shapes of each call against what was exported, which takes longer than a small network does: 70 of
    120 µs for three layers and 16 rows (two busy cores, torch 2.13). It depends on shapes alone, so it is done once for
    those of a call.
    """

    def __init__(self, module: Any, spec: Any, leaves: Sequence[Any], *, flattens: bool) -> None:
        """Takes the program as a module, how its arguments nest, what they are made of, and whether results nest."""
        self._flattens = flattens
        self._module = module
        self._spec = spec
        self._leaves = leaves
        arguments, named = spec.children()
        flat = not named.children() and all(child.is_leaf() for child in arguments.children())
        self._nests = not flat or any(hasattr(leaf, "value") for leaf in leaves)
        self._seen: set[tuple[torch.Size, ...]] = set()
        self._compiled = False

    def compile(self, **options: Any) -> None:
        """Has `torch.compile` compile the program, which then checks on its own."""
        self._module.compile(**options)
        self._compiled = True

    def __call__(self, *tensors: Any) -> Any:
        """What the program gives."""
        shapes = tuple(tensor.shape for tensor in tensors)
        known = shapes in self._seen and not self._compiled
        run = self._module.forward if known else self._module
        if self._nests:
            rest = iter(tensors)
            values = [leaf.value if hasattr(leaf, "value") else next(rest) for leaf in self._leaves]
            arguments, named = pytree.tree_unflatten(values, self._spec)
            found = run(*arguments, **named)
        else:
            found = run(*tensors)
        if not known and len(self._seen) < _MOST_SHAPES:
            self._seen.add(shapes)
        return pytree.tree_leaves(found) if self._flattens else found


def _module(program: Any) -> Any:
    """The program as a module; newer releases of torch check shapes twice unless told otherwise."""
    checks = "check_guards" in inspect.signature(program.module).parameters
    return program.module(check_guards=False) if checks else program.module()
