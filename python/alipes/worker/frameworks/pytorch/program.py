"""Opens a model of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.check import v2_name
from alipes.worker.frameworks.opened import Opening, reading
from alipes.worker.frameworks.ports import further_inputs, output_types
from alipes.worker.frameworks.pytorch.archive import FileKind, kind_of
from alipes.worker.frameworks.pytorch.binding import InputBinding, bind_inputs, bind_outputs
from alipes.worker.frameworks.pytorch.compiled import open_compiled
from alipes.worker.frameworks.pytorch.exported import open_exported
from alipes.worker.frameworks.pytorch.factory import open_factory
from alipes.worker.frameworks.pytorch.hidden_state import HiddenState, differs_when_repeated, find_state
from alipes.worker.frameworks.pytorch.module import TORCH_TYPES, Binding, TorchModel
from alipes.worker.frameworks.pytorch.opened import OpenedFile
from alipes.worker.frameworks.pytorch.probe import batch_of, probe
from alipes.worker.frameworks.pytorch.script import open_script
from alipes.worker.frameworks.pytorch.settings import apply, read_settings
from alipes.worker.frameworks.pytorch.shared_weights import share_weights

__all__ = ["open_model"]

_OPEN: Final[Mapping[FileKind, Callable[[Opening], OpenedFile]]] = MappingProxyType(
    {
        FileKind.SCRIPT: open_script,
        FileKind.EXPORTED: open_exported,
        FileKind.COMPILED: open_compiled,
        FileKind.WEIGHTS: open_factory,
        FileKind.SAFETENSORS: open_factory,
        FileKind.CODE: open_factory,
    }
)


def open_model(opening: Opening) -> TorchModel:
    """Opens a model, whatever kind of file it is.

    Raises:
        LoadError: If the file cannot be read, or does not fit the configuration.
    """
    settings = read_settings(opening)
    apply(opening)
    if opening.file.is_dir():
        raise opening.refuse(
            "it is a folder, expected a file that torch.jit.save, torch.export.save or torch.save wrote"
        )
    with reading(opening):
        kind = kind_of(opening.file)
    if kind is FileKind.UNKNOWN:
        raise opening.refuse(
            "it is no whole file of PyTorch: expected what torch.jit.save, torch.export.save or torch.save wrote; copy "
            "or export the model again"
        )
    file = _OPEN[kind](opening)
    if settings.shares and opening.device == "cpu":
        share_weights(file.weights, opening.file)
    datatypes = {name: v2_name(kind) for name, kind in output_types(opening.config).items()}
    further = [tensor["name"] for tensor in further_inputs(opening.config)]
    listed = [tensor["name"] for tensor in opening.config.get("input", ())]
    names = {"input": [name for name in listed if name not in further], "output": list(datatypes)}
    signature = file.signature
    if not (opening.config.get("input") and opening.config.get("output")):
        signature = signature or _found_out(opening, file)
        names["input"] = names["input"] or [port.name for port in signature.inputs if port.name not in further]
        names["output"] = names["output"] or [port.name for port in signature.outputs]
    inputs = bind_inputs(opening, names["input"], file.arguments, further)
    outputs = bind_outputs(opening, names["output"], file.results)
    signature = signature if file.signature is None else file.named(inputs, outputs)
    _check_datatypes(opening, datatypes, signature)
    _check_texts(opening, kind, file, inputs)
    _check_batch(opening, signature)
    _check_stated(opening, file, inputs)
    state = _hidden_state(opening, file, signature, inputs)
    if settings.compile is not None:
        _compile(opening, kind, file, settings.compile)
    binding = Binding(inputs, outputs, datatypes)
    return TorchModel(file.module, binding, settings, device=opening.device, signature=signature, state=state)


def _hidden_state(
    opening: Opening, file: OpenedFile, signature: Signature | None, inputs: InputBinding
) -> HiddenState | None:
    """What the module keeps from one call to the next; a module that is told of its sequences keeps it by row or by id.

    Raises:
        LoadError: If machine code keeps one.
    """
    if opening.config.get("sequence_batching", {}).get("control_input"):
        return None
    ports = signature.inputs if signature is not None else _configured(opening)
    if file.owner is not None:
        return find_state(file.module, file.owner, ports, inputs, opening.device)
    if file.reload is None:
        return None
    try:
        differs = differs_when_repeated(file.module, file.reload, ports, inputs, opening.device)
    except Exception:  # what it does not take cannot tell
        return None
    if differs:
        raise opening.refuse(
            "it keeps a state from one call to the next, so the answer to one client would depend on what others sent: "
            "compile it with the state as one more input and output, which sequence_batching.state connects"
        )
    return None


def _check_stated(opening: Opening, file: OpenedFile, inputs: InputBinding) -> None:
    """Inputs have the datatypes and sizes that machine code reads: it checks nothing by itself.

    Raises:
        LoadError: If one has not.
    """
    arguments, ports = file.arguments, {port.name: port for port in _configured(opening)}
    if not arguments.datatypes:
        return
    for argument, name in inputs.order:
        at, port = arguments.names.index(argument), ports[name]
        datatype = arguments.datatypes[at]
        if datatype not in ("", port.datatype):
            raise opening.refuse(f"input '{name}' is {port.datatype} in the configuration, and {datatype} in the code")
        for axis, size in arguments.sizes[at].items():
            if axis >= len(port.shape) or port.shape[axis] != size:
                raise opening.refuse(
                    f"input '{name}' has shape {list(port.shape)} in the configuration, and size {size} on axis {axis} "
                    "in the code"
                )


def _configured(opening: Opening) -> list[Port]:
    """The inputs as the configuration has them, those that the server fills in among them."""
    batches = opening.config.get("max_batch_size", 0) > 0
    return [_port(tensor, batches) for tensor in (*opening.config.get("input", ()), *further_inputs(opening.config))]


def _check_texts(opening: Opening, kind: FileKind, file: OpenedFile, inputs: InputBinding) -> None:
    """Texts go where the file takes a list of text.

    Raises:
        LoadError: If an input of texts is a tensor in the file, or the other way round.
    """
    tensors = (*opening.config.get("input", ()), *further_inputs(opening.config))
    declared = {tensor["name"]: v2_name(tensor["data_type"]) == "BYTES" for tensor in tensors}
    no_texts = kind in (FileKind.EXPORTED, FileKind.COMPILED)
    for argument, name in inputs.order:
        takes_text = file.arguments.takes_text(argument)
        if declared.get(name) and (no_texts or takes_text is False):
            raise opening.refuse(f"input '{name}' is TYPE_STRING, and argument '{argument}' of the model takes tensors")
        if name in declared and not declared[name] and takes_text:
            raise opening.refuse(f"argument '{argument}' of the model takes texts: input '{name}' must be TYPE_STRING")


def _compile(opening: Opening, kind: FileKind, file: OpenedFile, options: Mapping[str, Any]) -> None:
    if kind in (FileKind.SCRIPT, FileKind.COMPILED):
        raise opening.refuse(
            f"it is {kind.value}, which torch.compile does not take: leave TORCH_COMPILE_OPTIONAL_PARAMETERS out"
        )
    file.module.compile(**options)


def _found_out(opening: Opening, file: OpenedFile) -> Signature:
    """Inputs and outputs of a file that does not say all of them.

    Raises:
        LoadError: If they cannot be found out.
    """
    listed = opening.config.get("input", ())
    if listed:
        batches = opening.config.get("max_batch_size", 0) > 0
        ports = [_port(tensor, batches) for tensor in listed]
        if not batches:
            raise opening.refuse("the configuration lists inputs and no outputs: list these, too")
        binding = bind_inputs(opening, [port.name for port in ports], file.arguments)
    elif file.examples:
        binding = bind_inputs(opening, [port.name for port in file.examples], file.arguments)
        _check_datatypes(opening, {}, Signature(file.examples, ()))
        ports = list(batch_of(file.module, file.examples, binding))
    else:
        config = f"models/{opening.model_name}/config.pbtxt" if opening.bare_file else "config.pbtxt"
        raise opening.refuse(
            "the file does not say which datatypes and shapes the model has; save it by torch.jit.trace, which records "
            f"them, or {opening.into_repository()}list input and output in {config}, each with name, data_type and "
            f"dims{opening.then_serve()}: the arguments of its forward are {_listed(file.arguments.names)}"
        )
    return probe(opening, file.module, ports, binding)


def _port(tensor: Mapping[str, Any], batches: bool) -> Port:
    dims = [int(size) for size in tensor.get("reshape", {}).get("shape", tensor.get("dims", ()))]
    return Port(tensor["name"], v2_name(tensor["data_type"]), tuple([ANY, *dims] if batches else dims))


def _check_datatypes(opening: Opening, outputs: Mapping[str, str], signature: Signature | None) -> None:
    """Every datatype is one that arrays have, too."""
    tensors = (*opening.config.get("input", ()), *further_inputs(opening.config))
    listed = {tensor["name"]: v2_name(tensor["data_type"]) for tensor in tensors}
    known = {port.name: port.datatype for port in (*signature.inputs, *signature.outputs)} if signature else {}
    for name, datatype in {**known, **listed, **outputs}.items():
        if datatype not in TORCH_TYPES and datatype != "BYTES":
            raise opening.refuse(
                f"tensor '{name}' is {datatype}, which requests cannot carry here: take and give FP32, and convert in "
                "forward"
            )


def _check_batch(opening: Opening, signature: Signature | None) -> None:
    """A configuration for batches has a file whose first axes are open."""
    if signature is None or opening.config.get("max_batch_size", 0) <= 0:
        return
    fixed = [port for port in (*signature.inputs, *signature.outputs) if port.shape and port.shape[0] != ANY]
    if fixed:
        raise opening.refuse(
            f"max_batch_size is {opening.config['max_batch_size']}, and axis 0 of '{fixed[0].name}' has the fixed size "
            f"{fixed[0].shape[0]}: export it with dynamic_shapes, or set max_batch_size to 0 and list that axis in dims"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "not known"
