"""A server for tests of programs that ask one: it answers a client's calls from plain functions, without a process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from alipes.client.arguments import setting_error
from alipes.client.plain.request import Array
from alipes.client.plain.transport import TransportCall, sent_array
from alipes.client.signature import Signature, TensorSpec
from alipes.config.nearest import nearest_first
from alipes.errors import AlipesError, InferError, Internal, InvalidArgument, NotFound, NotReady
from alipes.types import IndexEntry, ModelState

__all__ = ["FakeModel", "FakeServer"]

Function: TypeAlias = Callable[..., Any]
Declared: TypeAlias = Mapping[str, tuple[str, Sequence[int]]]
"""Name -> datatype, such as `FP32`, and shape, in which -1 is any size."""

_VERSION: Final = "1"
_UNKNOWN: Final = ""
"""The datatype of an input that nobody has declared."""


@dataclass(frozen=True, slots=True)
class FakeModel:
    """A function with the inputs and outputs that its model declares: what does not fit is refused as by a server.

    Attributes:
        function: Called with the inputs by name; returns an array, several, or arrays by name. A generator is a
            decoupled model: each value is a response.
        inputs: By name, datatype and shape: `{"sound": ("FP32", [-1])}`; the function's arguments by default, which
            take anything.
        outputs: Likewise; names in the order of what the function returns, `output_0` and so on by default.
    """

    function: Function
    inputs: Declared = field(default_factory=dict)
    outputs: Declared = field(default_factory=dict)

    def signature(self, name: str) -> Signature:
        """The model's inputs and outputs."""
        inputs, outputs = (
            {name: TensorSpec(name, datatype, tuple(shape)) for name, (datatype, shape) in declared.items()}
            for declared in (self.inputs or self._arguments(required=False), self.outputs)
        )
        required = self.inputs or self._arguments(required=True)
        return Signature(name, inputs, outputs, frozenset(required))

    def _arguments(self, *, required: bool) -> Declared:
        """The function's arguments as inputs that take anything, or those that have no default."""
        parameters = inspect.signature(self.function).parameters.values()
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return {
            one.name: (_UNKNOWN, (-1,))
            for one in parameters
            if one.kind in by_name and (not required or one.default is inspect.Parameter.empty)
        }


class FakeServer:
    """Answers the calls of a `Client` or an `AsyncClient` from plain functions, for tests without a server.

    A function is called with a request's inputs as arrays by name; what it returns is the answer, and an error of
    `alipes.errors` that it raises is the server's. Models are loaded and unloaded as on a server.

    >>> server = FakeServer({"louder": lambda sound: sound * 2})
    >>> print(Client(transport=server).infer("louder", [1.0, 2.0]), len(server.calls))
    [2. 4.] 1

    Attributes:
        calls: Every call so far, a `TransportCall` each: what a test may look at.
    """

    def __init__(self, models: Mapping[str, Function | FakeModel]) -> None:
        """Takes the models by name.

        Raises:
            ConfigError: If one is no function.
        """
        if not isinstance(models, Mapping):
            raise setting_error("models", "a dictionary of functions by model", models)
        for name, model in models.items():
            if not isinstance(model, FakeModel) and not callable(model):
                raise setting_error(f"models['{name}']", "a function or a FakeModel", model)
        self.calls: list[TransportCall] = []
        self._models = {
            name: model if isinstance(model, FakeModel) else FakeModel(model) for name, model in models.items()
        }
        self._loaded = set(self._models)
        self._counts = dict.fromkeys(self._models, 0)

    def __repr__(self) -> str:
        """The class and the models' names."""
        return f"FakeServer({sorted(self._models)})"

    def __call__(self, call: TransportCall) -> Any:
        """The answer to a call, as `Transport` has it.

        Raises:
            InferError: What a server would refuse the call with, or what a function has raised.
        """
        self.calls.append(call)
        answers: dict[str, Callable[[TransportCall], Any]] = {
            "infer": lambda call: self._one(call, self._call(call)),
            "stream": lambda call: self._each(call, self._call(call)),
            "live": lambda _: True,
            "ready": self._ready,
            "server_metadata": lambda _: {"name": "alipes fake", "version": _VERSION, "extensions": []},
            "models": lambda _: [self._entry(name) for name in sorted(self._models)],
            "metadata": self._about,
            "config": self._about,
            "statistics": self._statistics,
            "load": self._move,
            "unload": self._move,
        }
        return answers[call.verb](call)

    def _ready(self, call: TransportCall) -> bool:
        return not call.model or (call.model in self._loaded and call.version in {"", _VERSION})

    def _model(self, call: TransportCall, names: str = "") -> FakeModel:
        """The model of a call, which has to be loaded."""
        if call.model not in self._models:
            raise NotFound(f"Request for unknown model: '{call.model}' is not found{names}", model=call.model)
        if call.version not in {"", _VERSION}:
            text = f"Request for unknown model: '{call.model}' version {call.version} is not found"
            raise NotFound(text, model=call.model)
        if call.model not in self._loaded:
            raise NotReady(f"Request for unknown model: '{call.model}' has no available versions", model=call.model)
        return self._models[call.model]

    def _call(self, call: TransportCall) -> Any:
        """What the function of a request returns."""
        names = f"; the server has {nearest_first(call.model, self._models)}" if self._models else ""
        model = self._model(call, names)
        signature = model.signature(call.model)
        assert call.inputs is not None
        arrays = {name: _checked(signature, name, value) for name, value in signature.named(call.inputs).items()}
        found = _run(call, lambda: model.function(**arrays))
        self._counts[call.model] += 1
        return found

    def _one(self, call: TransportCall, found: Any) -> Mapping[str, Any]:
        """The outputs of the only response to a request."""
        if not isinstance(found, Iterator):
            return self._outputs(call, found)
        responses = list(self._each(call, found))
        if len(responses) != 1:
            text = f"model '{call.model}' gave {len(responses)} responses to one request: ask it with stream()"
            raise InvalidArgument(text, model=call.model)
        return responses[0]

    def _each(self, call: TransportCall, found: Any) -> Iterator[Mapping[str, Any]]:
        """The outputs of each response to a request."""
        if not isinstance(found, Iterator):
            yield self._outputs(call, found)
            return
        end = object()
        while (response := _run(call, lambda: next(found, end))) is not end:
            yield self._outputs(call, response)

    def _outputs(self, call: TransportCall, found: Any) -> Mapping[str, Any]:
        """What a function has returned, by name, and no more than what was asked for."""
        if isinstance(found, Mapping):
            named = dict(found)
        else:
            values = found if isinstance(found, (list, tuple)) else (found,)
            declared = list(self._models[call.model].outputs)
            names = declared or [f"output_{number}" for number in range(len(values))]
            if len(names) != len(values):
                text = f"model '{call.model}' declares {len(names)} outputs, its function returned {len(values)}"
                raise Internal(text, model=call.model)
            named = dict(zip(names, values, strict=True))
        if call.outputs is None:
            return named
        if unknown := [name for name in call.outputs if name not in named]:
            known = nearest_first(unknown[0], named)
            text = f"model '{call.model}' has no output '{unknown[0]}': its outputs are {known}"
            raise InvalidArgument(text, model=call.model)
        return {name: named[name] for name in call.outputs}

    def _about(self, call: TransportCall) -> dict[str, Any]:
        """A model's metadata or configuration."""
        signature = self._model(call).signature(call.model)
        inputs, outputs = (
            [{"name": spec.name, "datatype": spec.datatype, "shape": list(spec.shape)} for spec in specs.values()]
            for specs in (signature.inputs, signature.outputs)
        )
        if call.verb == "metadata":
            platform = {"name": call.model, "versions": [_VERSION], "platform": "fake"}
            return {**platform, "inputs": inputs, "outputs": outputs}
        declared = [{**one, "optional": one["name"] not in signature.required} for one in inputs]
        return {"name": call.model, "backend": "fake", "max_batch_size": 0, "input": declared, "output": outputs}

    def _entry(self, name: str) -> IndexEntry:
        if name in self._loaded:
            return IndexEntry(name, _VERSION, ModelState.READY)
        return IndexEntry(name, _VERSION, ModelState.UNAVAILABLE, "unloaded")

    def _statistics(self, call: TransportCall) -> list[dict[str, Any]]:
        if call.model:
            self._model(call)
        names = [call.model] if call.model else sorted(self._loaded)
        return [
            {
                "name": name,
                "version": _VERSION,
                "inference_count": self._counts[name],
                "execution_count": self._counts[name],
                "inference_stats": {"success": {"count": self._counts[name], "ns": 0}},
            }
            for name in names
        ]

    def _move(self, call: TransportCall) -> None:
        """Loads or unloads a model."""
        if call.verb == "unload":
            self._loaded.discard(call.model)
        elif call.model not in self._models:
            text = f"failed to load '{call.model}', failed to poll from model repository"
            raise Internal(text, model=call.model)
        else:
            self._loaded.add(call.model)


def _checked(signature: Signature, name: str, value: Any) -> Array:
    """An input as its model receives it."""
    spec = signature.inputs[name]
    try:
        return sent_array(value if spec.datatype == _UNKNOWN else spec.tensor(signature.model, value))
    except InvalidArgument:
        raise
    except (TypeError, ValueError) as error:
        text = f"input '{name}' of model '{signature.model}' is no array: {error}"
        raise InvalidArgument(text, model=signature.model) from error


def _run(call: TransportCall, function: Callable[[], Any]) -> Any:
    """Calls a function as a server calls a model: what it raises is the error of the request."""
    try:
        return function()
    except AlipesError as error:
        if isinstance(error, InferError):
            error.model = error.model or call.model
        raise
    except Exception as error:
        raise Internal(f"{type(error).__name__}: {error}", model=call.model) from error
