"""What the annotations of a function say: its arguments, its result, and whether both are tensors."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np

from alipes.errors import ConfigError
from alipes.worker.apps.custom import is_picture
from alipes.worker.apps.exchange import Request, Response
from alipes.worker.apps.options import Options
from alipes.worker.apps.tensor_types import TensorType, array_spec, tensor_type, without_none

__all__ = ["DOCUMENT", "METHODS", "Argument", "Plan", "called_function", "has_method", "is_stream_or_async", "plan_of"]

DOCUMENT: Final = "document"
"""Name of the tensors that carry the arguments and the result as JSON, where they are no tensors themselves."""

METHODS: Final = ("predict", "__call__")
"""What a class may answer with, the first that it defines."""

_STREAMS: Final = (
    collections.abc.Generator,
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a function.

    Attributes:
        name: Its name, which is that of the member in a document and of the input tensor.
        annotation: What a request carries of it: one row, where the function takes batches.
        required: Whether it has no default.
        default: Its default.
        tensor: How it looks as a tensor; None where it is none.
        stacks: Whether the rows of several requests become an array; else, in a batch, they become a list.
        input: Name of the input tensor, where it is another than that of the argument.
    """

    name: str
    annotation: Any
    required: bool
    default: Any = None
    tensor: TensorType | None = None
    stacks: bool = False
    input: str = ""

    @property
    def is_file(self) -> bool:
        """Whether a raw body, or a file of a form, can be its value."""
        kind = without_none(self.annotation)[0]
        return kind is bytes or is_picture(kind)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a function is called.

    Attributes:
        arguments: Its arguments but for the request.
        request: Name of the argument that gets the request; empty for none.
        result: Annotation of what one request gets; `Any` where there is none.
        outputs: The result as tensors by name; None where it is none.
        is_stream: Whether it gives any number of results, one after the other.
        is_async: Whether it is `async`.
        batched: Whether it takes the rows of several requests at once.
        any_rows: Whether it may return another number of rows than a request has, if the request is called alone.
        why_alone: Why each request is a call of its own, though the function takes batches; empty where it is not.
    """

    arguments: tuple[Argument, ...]
    request: str
    result: Any
    outputs: Mapping[str, TensorType] | None
    is_stream: bool
    is_async: bool
    batched: bool
    any_rows: bool = False
    why_alone: str = ""

    @property
    def has_tensors(self) -> bool:
        """Whether the function can be asked with tensors: all that it takes and gives is one."""
        return bool(self.arguments) and self.outputs is not None and all(one.tensor for one in self.arguments)

    @property
    def reads_request_alone(self) -> bool:
        """Whether the request is all that the function takes: its body may be anything, and nobody else reads it."""
        return bool(self.request) and not self.arguments

    @property
    def file(self) -> Argument | None:
        """The argument that a raw body is the value of: the only one that is a file."""
        files = [one for one in self.arguments if one.is_file]
        return files[0] if len(files) == 1 else None


def plan_of(served: Callable[..., Any], options: Options, methods: Sequence[str] = METHODS) -> Plan:
    """The plan of a decorated function or class.

    Args:
        served: The function or class.
        options: What was said of it.
        methods: The methods of a class of which the first that it has is meant.

    Raises:
        ConfigError: If it cannot be served; the text says what about it, and what to do.
    """
    function = called_function(served, options.name, methods)
    kinds = inspect.Parameter
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigError(
            f"model '{options.name}': its annotations name '{error.name}', which is not there when the app is "
            "imported: import it outside of `if TYPE_CHECKING`, or define it"
        ) from error
    except Exception as error:
        raise ConfigError(f"model '{options.name}': its annotations cannot be read: {error}") from error
    parameters = list(inspect.signature(function).parameters.values())
    if isinstance(served, type):
        parameters = parameters[1:]  # self
    batched = options.max_batch_size > 0
    arguments: list[Argument] = []
    request = ""
    for one in parameters:
        annotation = hints.get(one.name, Any)
        if annotation is Request:
            request = one.name
        elif one.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY):
            arguments.append(_argument(one, annotation, options, batched))
        else:
            mark = "*" if one.kind is kinds.VAR_POSITIONAL else "**" if one.kind is kinds.VAR_KEYWORD else ""
            raise ConfigError(
                f"model '{options.name}': argument '{mark}{one.name}' cannot be given by name; "
                "name each argument, without * or / in front"
            )
    is_stream, is_async, result = _result(function, hints.get("return", Any))
    if batched and (request or is_stream or is_async):
        what = "a stream" if is_stream else "async" if is_async else "given the request"
        raise ConfigError(f"model '{options.name}': a function that takes batches cannot be {what}; leave one out")
    if batched and not arguments:
        raise ConfigError(f"model '{options.name}': a function that takes batches has at least one argument")
    outputs = _outputs(result, batched=batched)
    return Plan(tuple(arguments), request, _row(result) if batched else result, outputs, is_stream, is_async, batched)


def is_stream_or_async(function: Callable[..., Any]) -> bool:
    """Whether a function is a generator, `async`, or both."""
    is_stream, is_async, _ = _result(function, Any)
    return is_stream or is_async


def has_method(served: type, name: str) -> bool:
    """Whether a class has a method of its own, and not only `object`'s."""
    return any(name in vars(base) for base in served.__mro__[:-1])


def called_function(served: Callable[..., Any], name: str, methods: Sequence[str] = METHODS) -> Callable[..., Any]:
    """The function that answers: the decorated one, or the method of a class.

    Args:
        served: What is decorated.
        name: The model's name.
        methods: The methods of a class of which the first that it has is meant.

    Raises:
        ConfigError: If a class has none.
    """
    if not isinstance(served, type):
        return served
    for method in methods:
        if has_method(served, method):
            found: Callable[..., Any] = getattr(served, method)
            return found
    raise ConfigError(f"model '{name}': class {served.__name__} needs a method predict or __call__ that answers")


def _argument(one: inspect.Parameter, annotation: Any, options: Options, batched: bool) -> Argument:
    bare, _ = without_none(annotation)
    required = one.default is inspect.Parameter.empty
    stacks = array_spec(bare) is not None
    if batched and not stacks and typing.get_origin(bare) is not list:
        raise ConfigError(
            f"model '{options.name}': argument '{one.name}' is {_shown(annotation)}, and the function takes batches: "
            "annotate it as an array whose first axis is the batch, or as a list with one item for each request"
        )
    return Argument(
        one.name,
        _row(bare) if batched else annotation,
        required,
        None if required else one.default,
        tensor_type(bare, batched=batched),
        stacks,
    )


def _row(annotation: Any) -> Any:
    """What one request has of an annotation that describes a batch."""
    if (spec := array_spec(annotation)) is not None:
        kind = spec.dtype if spec.dtype is not None else Any
        return Annotated[np.ndarray, kind, None if spec.shape is None else spec.shape[1:]]
    origin = typing.get_origin(annotation)
    if origin is list:
        return typing.get_args(annotation)[0]
    if origin is tuple:
        return tuple[tuple(_row(one) for one in typing.get_args(annotation))]  # type: ignore[misc]
    if origin is dict:
        key, value = typing.get_args(annotation)
        return dict[key, _row(value)]  # type: ignore[valid-type, misc]
    return Any


def _result(function: Callable[..., Any], annotation: Any) -> tuple[bool, bool, Any]:
    """Whether it is a stream, whether it is async, and what one result is."""
    is_async_stream = inspect.isasyncgenfunction(function)
    is_stream = is_async_stream or inspect.isgeneratorfunction(function)
    is_async = is_async_stream or inspect.iscoroutinefunction(function)
    if not is_stream:
        return False, is_async, annotation
    items = typing.get_args(annotation) if typing.get_origin(annotation) in _STREAMS else ()
    return True, is_async, items[0] if items else Any


def _outputs(result: Any, *, batched: bool) -> Mapping[str, TensorType] | None:
    """The result as tensors: one, several in a tuple, or those of a class with fields; None where it is none."""
    fields = _fields(result)
    if fields is None:
        fields = {"output_0": result}
        is_tuple = typing.get_origin(result) is tuple
        if is_tuple and Ellipsis not in typing.get_args(result):
            fields = {f"output_{index}": one for index, one in enumerate(typing.get_args(result))}
    found = {name: tensor_type(annotation, batched=batched) for name, annotation in fields.items()}
    return {name: one for name, one in found.items() if one} if fields and all(found.values()) else None


def _fields(result: Any) -> dict[str, Any] | None:
    if not isinstance(result, type) or result is Response:
        return None
    if dataclasses.is_dataclass(result) or typing.is_typeddict(result) or hasattr(result, "_fields"):
        try:
            return typing.get_type_hints(result, include_extras=True)
        except Exception:  # documents say what is wrong with it
            return None
    return None


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
