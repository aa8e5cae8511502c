"""Opens archives of `torch.export` and of AOTInductor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.opened import Opening, reading
from alipes.worker.frameworks.pytorch.binding import Arguments, Results
from alipes.worker.frameworks.pytorch.module import v2_datatype
from alipes.worker.frameworks.pytorch.opened import OpenedFile, safe_pickles

__all__ = ["open_compiled", "open_exported"]


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


def open_compiled(opening: Opening) -> OpenedFile:
    """Opens an archive of AOTInductor, which holds machine code.

    Raises:
        LoadError: If it cannot be read, or the operator does not allow it.
    """
    opening.need_pickles("compiled code")
    with reading(opening):
        package = torch._inductor.aoti_load_package(str(opening.file))
    return OpenedFile(package, Arguments((), unlimited=True), Results())


def _opened(program: Any) -> OpenedFile:
    nodes = {node.name: node for node in program.graph.nodes}
    leaves = [spec.arg for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    inputs = [_port(leaf.name, nodes[leaf.name].meta["val"]) for leaf in leaves if not hasattr(leaf, "value")]
    spec = program.call_spec.out_spec
    keys = tuple(str(key) for key in spec.context) if spec.type is dict else ()
    values = [node.meta["val"] if hasattr(node, "meta") else node for node in nodes["output"].args[0]]
    results = values[-len(program.graph_signature.user_outputs) :]  # what it keeps comes before what it gives
    outputs = [_port(keys[at] if keys else f"output_{at}", value) for at, value in enumerate(results)]
    names = tuple(port.name for port in inputs)
    call = _call(program.module(), program.call_spec.in_spec, leaves)
    return OpenedFile(
        call,
        Arguments(names, required=len(names)),
        Results(len(outputs), keys),
        signature=Signature(tuple(inputs), tuple(outputs)),
    )


def _port(name: str, value: Any) -> Port:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"'{name}' is a {type(value).__name__}; only tensors are served")
    return Port(name, v2_datatype(value.dtype), tuple(size if isinstance(size, int) else ANY for size in value.shape))


def _call(module: Callable[..., Any], spec: Any, leaves: Sequence[Any]) -> Callable[..., Any]:
    """What takes the tensors one by one, whatever the module's arguments are made of."""
    arguments, named = spec.children()
    if not named.children() and all(child.is_leaf() for child in arguments.children()):
        constants = [leaf for leaf in leaves if hasattr(leaf, "value")]
        if not constants:
            return module

    def call(*tensors: Any) -> Any:
        rest = iter(tensors)
        values = [leaf.value if hasattr(leaf, "value") else next(rest) for leaf in leaves]
        positional, keywords = pytree.tree_unflatten(values, spec)
        return module(*positional, **keywords)

    return call
