"""A model that a PyTriton script binds: its declaration, checked, and its functions as instances of it."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from alipes.compat.pytriton.context import TritonContext, bind_context
from alipes.compat.pytriton.exceptions import PyTritonUnrecoverableError, PyTritonValidationError
from alipes.compat.pytriton.generator import ModelConfigGenerator
from alipes.compat.pytriton.instance import FunctionCalls
from alipes.compat.pytriton.request import Request
from alipes.compat.pytriton.settings import DeviceKind, ModelConfig, Tensor
from alipes.compat.pytriton.triton_model_config import ResponseCache, TensorSpec, TritonModelConfig
from alipes.compat.pytriton.warmup import generate_warmup_requests

__all__ = ["BoundModel", "check_model_name"]

_LOG: Final = logging.getLogger("alipes.compat.pytriton")
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_model_name(name: str) -> None:
    """Refuse a name that a model cannot have.

    Raises:
        PyTritonValidationError: If it is such a name.
    """
    if not name:
        raise PyTritonValidationError("Model name cannot be empty")
    if not _NAME.fullmatch(name):
        raise PyTritonValidationError(
            "Model name can only contain alphanumeric characters, dots, underscores and dashes"
        )


class BoundModel:
    """A model whose instances are functions of the script.

    Attributes:
        model_name: Its name.
        model_version: Its version.
        config: Its configuration.
        infer_functions: One for each instance.
    """

    def __init__(  # noqa: PLR0913 - what `bind` takes
        self,
        *,
        model_name: str,
        model_version: int,
        infer_func: Any,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        config: ModelConfig,
        context: TritonContext,
        strict: bool,
    ) -> None:
        """Checks the declaration; nothing is called yet.

        Raises:
            PyTritonValidationError: If there is no function, or an output is optional.
            PyTritonBadParameterError: If settings do not go together.
        """
        self.model_name = model_name
        self.model_version = model_version
        self.infer_functions: Sequence[Callable[..., Any]] = [infer_func] if callable(infer_func) else infer_func
        if not isinstance(self.infer_functions, Sequence) or not all(map(callable, self.infer_functions)):
            raise PyTritonValidationError("inference_fn has to be either callable or sequence of callables")
        if any(output.optional for output in outputs):
            raise PyTritonValidationError("Output tensors cannot be optional.")
        self._warmup = config.model_warmup or []
        self._strict = strict
        self.config = TritonModelConfig(
            model_name=model_name,
            model_version=model_version,
            batching=config.batching,
            batcher=config.batcher,
            max_batch_size=config.max_batch_size,
            decoupled=config.decoupled,
            instance_group={DeviceKind.KIND_CPU: len(self.infer_functions)},
            inputs=_named(inputs, "INPUT"),
            outputs=_named(outputs, "OUTPUT"),
            response_cache=ResponseCache(enable=True) if config.response_cache else None,
        )
        self.document = ModelConfigGenerator(self.config).get_config()
        for function in self.infer_functions:
            context.model_configs[function] = copy.deepcopy(self.config)
            bind_context(context, function)

    @property
    def key(self) -> tuple[str, int]:
        """By what a server tells its models apart: the name, small letters or large, and the version."""
        return self.model_name.lower(), self.model_version

    def calls(self, stop_after: Callable[[PyTritonUnrecoverableError], None]) -> list[FunctionCalls]:
        """The calls of each of its functions; `stop_after` is called where one of them says that it cannot go on."""
        return [FunctionCalls(function, self.config, self._strict, stop_after) for function in self.infer_functions]

    def warm_up(self) -> None:
        """Call each function with the warm-up requests. One that fails is logged: the model may serve all the same."""
        if not self._warmup:
            return
        try:
            requests = generate_warmup_requests(self._warmup)
        except Exception as error:
            _LOG.error("the warm-up requests of model %s cannot be made: %s", self.model_name, error)
            return
        for number, function in enumerate(self.infer_functions):
            for inputs in requests:
                try:
                    function([Request(data=dict(inputs))])
                except Exception as error:
                    _LOG.warning("warm-up of model %s, instance %d, failed: %s", self.model_name, number, error)


def _named(tensors: Sequence[Tensor], prefix: str) -> list[TensorSpec]:
    """Tensors with their names; those without one are numbered from 1."""
    return [
        TensorSpec(tensor.name or f"{prefix}_{number}", tensor.shape, tensor.dtype, tensor.optional)
        for number, tensor in enumerate(tensors, 1)
    ]
