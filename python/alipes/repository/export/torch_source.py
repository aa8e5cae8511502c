"""A PyTorch model as the source of an export: its arguments, samples for them, and what it gives for these."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np

from alipes.config.datatypes import v2_name
from alipes.errors import ConfigError, ExportError
from alipes.progress.work import current
from alipes.repository.declare import datatype_number, declare
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.torch_samples import Sampler, SampleSize
from alipes.repository.tensors import Shape, model_shape

__all__ = ["Traced", "argument_names", "inference_mode", "is_module", "outputs_of", "to_numpy", "trace"]

# torch.export treats a batch of one as a constant; a second size shows which axes follow the batch.
_BATCH: Final = 2
_OTHER_BATCH: Final = 3


@dataclass(frozen=True, slots=True)
class Traced:
    """A model that has been run on samples.

    Attributes:
        module: The model.
        inputs: Names of the inputs in the order of the model's arguments.
        outputs: Names of the outputs in the model's order.
        shapes: What the model sees of each input; None for a size that requests choose.
        samples: A tensor for each argument.
        results: What the model gave for them.
        resized: Tensors of other sizes, a batch each, where requests choose the sizes.
        resized_results: What the model gave for the first of these.
    """

    module: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shapes: Mapping[str, Shape]
    samples: tuple[Any, ...]
    results: tuple[Any, ...]
    resized: tuple[tuple[Any, ...], ...] = ()
    resized_results: tuple[Any, ...] | None = None

    def dynamic_shapes(self) -> tuple[dict[int, Any], ...] | None:
        """The variable axes of each argument, as `torch.export` takes them; None where there are none."""
        torch: Any = import_module("torch")
        axes = tuple(
            {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(self.shapes[name]) if size is None}
            for name in self.inputs
        )
        return axes if any(axes) else None


def is_module(source: Any) -> bool:
    """Whether an object is a torch module or script module. If it is, torch has been imported already."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(source, torch.nn.Module)


@contextmanager
def inference_mode(module: Any) -> Iterator[None]:
    """The model as it is in inference: no gradients, and every part in evaluation mode; as it was, afterwards."""
    torch: Any = import_module("torch")
    modes = [(part, part.training) for part in module.modules()]
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        module.eval()
        try:
            yield
        finally:
            for part, mode in modes:
                part.training = mode


def trace(module: Any, request: ExportRequest, *, default_output: str = "output_{}") -> Traced:
    """Run a model on samples, and declare its inputs and outputs accordingly.

    Call it inside `inference_mode`.

    Raises:
        ExportError: If shapes, names and arguments do not fit each other, or the model fails on them.
    """
    current().step("running it on samples")
    config = request.config
    arguments, most = argument_names(module)
    shapes, types = _inputs_of(module, request, arguments)
    declare(config._proto, "input", shapes, types)
    names = [tensor.name for tensor in config.input]
    order = _argument_order(config.name, names, arguments, most)
    declared = {tensor.name: (model_shape(config._proto, tensor), tensor.data_type) for tensor in config.input}
    shapes_by_name = {name: shape for name, (shape, _) in declared.items()}
    device = next((one.device for one in (*module.parameters(), *module.buffers())), "cpu")
    sampler = Sampler(tuple(order), declared, _by_name(request.examples, names), device)
    largest = config.max_batch_size or _OTHER_BATCH
    samples = sampler.draw(SampleSize(min(_BATCH, largest)), seed=0)
    results = others = outputs_of(module(*samples))
    resized: tuple[tuple[Any, ...], ...] = ()
    if any(None in shape for shape in shapes_by_name.values()):
        stretched = SampleSize(_OTHER_BATCH if largest >= _OTHER_BATCH else 1, stretched=True)
        resized = (sampler.draw(stretched, seed=1), sampler.draw(SampleSize(1), seed=2))
        others = outputs_of(module(*resized[0]))
    if not any(None in shape[1:] for shape in shapes_by_name.values()):
        _check_batch_comes_first(request, results, others)
    _declare_outputs(request, results, others, default_output)
    outputs = tuple(tensor.name for tensor in config.output)
    return Traced(module, tuple(order), outputs, shapes_by_name, samples, results, resized, others)


def outputs_of(found: Any) -> tuple[Any, ...]:
    """The outputs among what a model gave.

    Raises:
        ExportError: If something among them is no tensor.
    """
    torch: Any = import_module("torch")
    if isinstance(found, torch.Tensor):
        return (found,)
    results = tuple(found.values()) if isinstance(found, Mapping) else tuple(found)
    wrong = [one for one in results if not isinstance(one, torch.Tensor)]
    if wrong:
        raise ExportError(f"its forward gives a {type(wrong[0]).__name__} among its outputs; expected tensors")
    return results


def to_numpy(tensor: Any) -> np.ndarray:
    """A tensor as an array; bfloat16, which numpy lacks, as float32."""
    torch: Any = import_module("torch")
    detached = tensor.detach().cpu()
    found: np.ndarray = (detached.float() if detached.dtype == torch.bfloat16 else detached).numpy()
    return found


def argument_names(module: Any) -> tuple[list[str], int | None]:
    """Names of the arguments, and how many there can be: None for any number."""
    torch: Any = import_module("torch")
    if isinstance(module, torch.jit.ScriptModule):
        names = [value.debugName().split(".")[0] for value in module.graph.inputs()][1:]
        return names, len(names)
    kinds = inspect.Parameter
    parameters = inspect.signature(module.forward).parameters.values()
    names = [one.name for one in parameters if one.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    return names, None if any(one.kind is kinds.VAR_POSITIONAL for one in parameters) else len(names)


def _argument_order(model: str, names: Sequence[str], arguments: Sequence[str], most: int | None) -> list[str]:
    """The inputs in the order of the arguments: by name where all names are arguments, else as they are declared."""
    if most is not None and len(names) > most:
        raise ExportError(
            f"export of model '{model}': it has {len(names)} inputs, {_listed(names)}, its forward takes {most}, "
            f"{_listed(arguments)}"
        )
    if not set(names) <= set(arguments):
        return list(names)
    order = [name for name in arguments if name in names]
    if order != list(arguments[: len(order)]):
        missing = next(name for name, wanted in zip(arguments, order, strict=False) if name != wanted)
        raise ExportError(
            f"export of model '{model}': its forward takes '{missing}' before '{order[-1]}', and no shape says so"
        )
    return order


def _inputs_of(module: Any, request: ExportRequest, arguments: Sequence[str]) -> tuple[Any, dict[str, object]]:
    """Shapes and datatypes of the inputs as far as they are given, or follow from the examples or the model."""
    shapes, examples = request.input_shapes, request.examples
    if shapes is None and examples is not None and not request.config.input:
        if not isinstance(examples, Mapping):
            examples = dict(zip(arguments, examples, strict=False))
        shapes = {name: (None, *one.shape[1:]) for name, one in examples.items()}
    names = list(shapes) if isinstance(shapes, Mapping) else [tensor.name for tensor in request.config.input]
    names = names or [f"input_{index}" for index in range(len(shapes or ()))]
    wanted = _by_name(request.input_dtypes, names)
    from_examples = {name: one.dtype for name, one in _by_name(examples, names).items()}
    # What is declared is not contradicted by a guess.
    guessed = {} if request.config.input else dict.fromkeys(names, _floating_type(module))
    return shapes, {**guessed, **from_examples, **wanted}


def _floating_type(module: Any) -> object:
    weights = (one.dtype for one in module.parameters() if one.is_floating_point())
    return next(weights, "FP32")


def _by_name(wanted: Any, names: Sequence[str]) -> dict[str, Any]:
    if wanted is None:
        return {}
    if isinstance(wanted, Mapping):
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise ExportError(f"there is no input '{unknown[0]}', only {_listed(names)}")
        return dict(wanted)
    values = [wanted] if hasattr(wanted, "shape") else list(wanted)
    return dict(zip(names, values, strict=False))


def _declare_outputs(request: ExportRequest, results: Sequence[Any], others: Sequence[Any], default: str) -> None:
    config, names = request.config, request.output_names
    if len(results) != len(others):
        raise ExportError(f"it gives {len(results)} outputs for one batch and {len(others)} for another")
    if names is not None and len(names) != len(results):
        raise ExportError(
            f"export of model '{config.name}': {len(names)} output names, {_listed(names)}, for {len(results)} outputs"
        )
    declared = [tensor.name for tensor in config.output]
    called = list(names or declared or [default.format(index) for index in range(len(results))])
    if len(called) != len(results):
        raise ExportError(
            f"model '{config.name}' has {len(called)} outputs, {_listed(called)}, the export gives {len(results)}"
        )
    shapes = [
        tuple(size if size == other else None for size, other in zip(one.shape, two.shape, strict=True))
        for one, two in zip(results, others, strict=True)
    ]
    declare(
        config._proto,
        "output",
        dict(zip(called, shapes, strict=True)),
        {name: _datatype(config.name, name, one) for name, one in zip(called, results, strict=True)},
    )


def _datatype(model: str, output: str, tensor: Any) -> str:
    try:
        return v2_name(datatype_number(tensor.dtype))
    except ConfigError as error:
        raise ExportError(f"export of model '{model}': output '{output}': {error}") from error


def _check_batch_comes_first(request: ExportRequest, results: Sequence[Any], others: Sequence[Any]) -> None:
    """Only the first axis may vary with the batch, which is all that varies."""
    for index, (one, other) in enumerate(zip(results, others, strict=False)):
        axes = [axis for axis, (size, now) in enumerate(zip(one.shape, other.shape, strict=False)) if size != now]
        if any(axes):
            raise ExportError(
                f"export of model '{request.config.name}': the batch comes out on axis {max(axes)} of output {index}, "
                "expected on axis 0"
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
