"""A function or class as a model: the folder that `alipes serve app.py` makes for it, with its source."""

from __future__ import annotations

import inspect
import json
import logging
import sys
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any, ClassVar, Final

import numpy as np

from alipes.config.call_endpoint import PARAMETER, RESERVED_NAMES
from alipes.config.render import config_json
from alipes.config.schema import ModelConfig as Message
from alipes.errors import ConfigError, ExportError
from alipes.repository.app_folder import SIGNATURE, app_config, call_endpoint, write_version
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.python_arrays import ArrayFunction
from alipes.repository.export.python_source import python_source
from alipes.repository.export.refusals import why_not_written
from alipes.repository.export.request import ExportRequest
from alipes.repository.platform import Platform
from alipes.worker.apps.arrays import plan_of_arrays
from alipes.worker.apps.describe import described
from alipes.worker.apps.options import Options, options_of
from alipes.worker.apps.plan import METHODS, is_stream_or_async
from alipes.worker.apps.steps import Step

__all__ = ["PythonApp"]

_log = logging.getLogger(__name__)

_ARRAYS: Final = "arrays.npz"
_FILE: Final = "app.py"


class PythonApp(Exporter):
    """Writes a function or class with all that it uses; a worker runs it as it runs one of `alipes serve app.py`.

    What `@alipes.model` stands above, and whatever is annotated, says its inputs and outputs itself. Of a function on
    arrays without annotations, `input_shapes` and calls of it say them.
    """

    platform: ClassVar[Platform] = Platform.PYTHON

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Functions, and classes with a method that answers."""
        if isinstance(source, type):
            return options_of(source) is not None or any(method in vars(source) for method in METHODS)
        return isinstance(source, FunctionType)

    def export(self, source: Any, request: ExportRequest) -> None:
        """Copies the source out of its module, reads the copy as a worker will, and declares what it takes and gives.

        Raises:
            ExportError: If it uses what cannot be written, or does not fit what is asked for.
        """
        if options_of(source) is None and _takes_arrays(source, request):
            _Copy(source, request, annotated=False).write_arrays()
        else:
            _Copy(source, request, annotated=True).write_annotated()


class _Copy:
    """A function or class and what is written of it."""

    def __init__(self, source: Any, request: ExportRequest, *, annotated: bool) -> None:
        self._source = source
        self._request = request
        self._model = request.config.name
        reason = why_not_written(source)
        if reason is not None:
            raise ExportError(f"export of model '{self._model}': {reason}")
        extracted = python_source(source, annotated=annotated)
        if extracted.arrays:
            np.savez(request.folder / _ARRAYS, **extracted.arrays)  # type: ignore[arg-type]
        self._text = f'"""Written by alipes.repository from {source.__name__}."""\n\n{extracted.text(_ARRAYS)}'
        (request.folder / _FILE).write_text(self._text, encoding="utf-8")
        if extracted.changed:
            names = ", ".join(f"'{name}'" for name in extracted.changed)
            _log.warning(
                "model '%s': '%s' changes %s of its module, of which each instance has one of its own",
                self._model,
                source.__name__,
                names,
            )

    def write_arrays(self) -> None:
        """Declares what shapes and calls say."""
        config = self._request.config._proto
        with self._read() as copy:
            found = ArrayFunction.declared(self._source, copy, self._request)
            why_alone = found.why_alone or ""
            plan = plan_of_arrays(copy, json.loads(config_json(config)), found.inputs, why_alone)
            model = described(Step(copy, Options(self._model, max_batch_size=config.max_batch_size)), plan)
        if not config.HasField("sequence_batching"):
            _answer_calls(config, model)
        self._write(model, inputs=found.inputs, why_alone=why_alone)

    def write_annotated(self) -> None:
        """Declares what the annotations say."""
        request = self._request
        if request.input_shapes is not None or request.output_names is not None:
            raise ExportError(
                f"export of model '{self._model}': the annotations of '{self._source.__name__}' say its inputs and "
                "outputs; leave out input_shapes= and output_names="
            )
        most = request.config.max_batch_size
        with self._read() as copy:
            own = options_of(copy)
            options = own or Options(self._model, max_batch_size=most)
            if most not in (0, options.max_batch_size):
                raise ExportError(
                    f"export of model '{self._model}': its configuration has max_batch_size {most}, and @alipes.model "
                    f"says {options.max_batch_size}: let both say the same"
                )
            model = described(Step(copy, options))
        _merge(request.config._proto, model, with_instances=own is not None)
        self._write(model)

    def _write(self, model: Mapping[str, Any], **arrays: Any) -> None:
        app: dict[str, Any] = {"file": _FILE, "name": self._model, "function": self._source.__name__}
        app |= {**arrays, "concurrency": model["concurrency"], "schema": model["schema"]}
        write_version(self._request.folder, app)

    @contextmanager
    def _read(self) -> Iterator[Any]:
        """The function or class in the copy of its source."""
        module = ModuleType(f"{self._model}.app")
        module.__file__ = str(self._request.folder / _FILE)
        sys.modules[module.__name__] = module  # annotations and dataclasses look their module up
        try:
            exec(compile(self._text, module.__file__, "exec"), vars(module))  # our own text, of the caller's source
            yield vars(module)[self._source.__name__]
        finally:
            del sys.modules[module.__name__]


def _takes_arrays(source: Any, request: ExportRequest) -> bool:
    """Whether shapes, rather than annotations, say what an undecorated function takes and gives."""
    if isinstance(source, type) or is_stream_or_async(source):
        return False
    if request.input_shapes is not None:
        return True
    if not _is_annotated(source):
        return True
    if not request.config.input:
        return False
    try:
        model = described(Step(source, Options(request.config.name, max_batch_size=request.config.max_batch_size)))
    except ConfigError:
        return True
    return _tensors(app_config(model)) != _tensors(request.config._proto)


def _is_annotated(source: FunctionType) -> bool:
    """Whether each argument has an annotation that says more than that it is an array."""
    arguments = inspect.signature(source).parameters
    try:
        hints = typing.get_type_hints(source, include_extras=True)
    except Exception:  # a name that is not there; what is served of it says so
        hints = source.__annotations__
    return all(hints.get(name, Any) not in (Any, np.ndarray) for name in arguments)


def _tensors(config: Message) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(one.name, one.data_type, tuple(one.dims)) for one in config.input]


def _merge(config: Message, model: dict[str, Any], *, with_instances: bool) -> None:
    """Puts what an app says of a model into the configuration in place of what it said before."""
    written = app_config({**model, "name": config.name, "has_endpoint": False})
    replaced = ["input", "output", "model_transaction_policy"]
    if with_instances:
        replaced.append("instance_group")
    else:
        written.ClearField("instance_group")
    for field in replaced:
        config.ClearField(field)
    config.MergeFrom(written)
    _answer_calls(config, model)


def _answer_calls(config: Message, model: Mapping[str, Any]) -> None:
    """Lets `POST /<name>` reach the model, if the server does not have the path for itself."""
    if config.name in RESERVED_NAMES:
        _log.warning("model '%s': the server has /%s for itself; ask over /v2", config.name, config.name)
    else:
        config.parameters[PARAMETER].string_value = call_endpoint(model)
        config.parameters[SIGNATURE].string_value = json.dumps(model["signature"])
