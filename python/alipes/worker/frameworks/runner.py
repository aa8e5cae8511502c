"""Runs a framework's model as a worker runs a Python model: requests in, responses out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alipes.worker.failure import describe
from alipes.worker.frameworks.check import check_ports
from alipes.worker.frameworks.joint_calls import JointCalls, split
from alipes.worker.frameworks.opened import OpenedModel, Opening
from alipes.worker.frameworks.ports import output_types
from alipes.worker.frameworks.programs import checked, opened
from alipes.worker.frameworks.sequence_states import SequenceStates, most_sequences
from alipes.worker.frameworks.thread_choice import run_of
from alipes.worker.frameworks.trial import try_request

if TYPE_CHECKING:
    from alipes._core import InferenceRequest, InferenceResponse

__all__ = ["Runner", "start_runner"]


def start_runner(framework: Mapping[str, Any], opening: Opening) -> Runner:
    """Opens a model, holds its configuration against the file, and asks it once.

    Raises:
        LoadError: If the file cannot be opened, contradicts the configuration, or cannot be run.
    """
    model = checked(framework, opening, opened)
    if model.signature is not None:
        check_ports(opening.model_name, opening.config, model.signature)
    runner = Runner(model, opening.config, run_of(model, opening))
    try_request(runner, opening)
    return runner


class Runner:
    """A model of a framework with the methods of a Python model."""

    def __init__(
        self,
        model: OpenedModel,
        config: Mapping[str, Any],
        run: Callable[[Mapping[str, np.ndarray]], Mapping[str, Any]] | None = None,
    ) -> None:
        """Takes the opened model, its configuration, complete, and what runs its batches if not its `run`."""
        from alipes._core import InferenceResponse, Tensor, TritonError, joint_inputs, joint_responses
        from alipes.worker.triton.logger import Logger

        self._model = model
        self._run_batch = run or model.run
        self._kinds = {name: _numpy_name(kind) for name, kind in output_types(config).items()}
        self._states = self._kinds.keys() - {one["name"] for one in config["output"]}
        self._sequences = SequenceStates(model, most_sequences(config)) if model.hidden else None
        ports = model.signature.inputs if model.signature is not None else ()
        self._scalars = [port.name for port in ports if not port.shape]
        joins = model.joins and config.get("max_batch_size", 0) > 0 and self._sequences is None
        self._calls = JointCalls(self._run, self._kinds, joins, Logger.log_warn)
        self._response, self._tensor, self._error = InferenceResponse, Tensor, TritonError
        self._joint_inputs, self._joint_responses = joint_inputs, joint_responses

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """A response for each request; one that the model cannot run fails alone."""
        if self._sequences is not None:
            return [self._step(request, self._sequences) for request in requests]
        if self._calls.joins and len(requests) > 1 and (joined := self._joint_inputs(requests)) is not None:
            return self._execute_jointly(requests, *joined)
        answers = self._calls.answers([_inputs(request) for request in requests])
        return [self._answer(*pair) for pair in zip(requests, answers, strict=True)]

    def _execute_jointly(
        self, requests: Sequence[InferenceRequest], joined: Mapping[str, Any], rows: list[int]
    ) -> list[InferenceResponse]:
        outputs = self._calls.outputs(joined, rows)
        if outputs is None:
            return [self._answer(request, self._calls.alone(_inputs(request))) for request in requests]
        responses = self._joint_responses(list(zip(self._kinds, outputs, strict=True)), rows)
        if responses is not None:
            return responses
        # Texts.
        return [self._answer(*pair) for pair in zip(requests, split(outputs, rows), strict=True)]

    def _step(self, request: InferenceRequest, sequences: SequenceStates) -> InferenceResponse:
        call = sequences.call_for(request.correlation_id(), request.flags())
        return self._answer(request, self._calls.alone(self._shaped(_inputs(request)), call))

    def finalize(self) -> None:
        """Closes the model."""
        self._model.close()

    def _run(self, **inputs: Any) -> Mapping[str, Any]:
        return self._run_batch(self._shaped(inputs))

    def _shaped(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs as the file has them: a single number has no axis there, and one of size 1 in requests."""
        for name in self._scalars:
            if name in inputs:
                inputs[name] = inputs[name].reshape(())
        return inputs

    def _answer(self, request: InferenceRequest, answer: list[Any] | Exception) -> InferenceResponse:
        if isinstance(answer, Exception):
            return self._response([], self._error(describe(answer)))
        pairs = zip(self._kinds, answer, strict=True)
        if len(answer) == 1:  # a request asks for one output at least
            return self._response([self._tensor(name, array) for name, array in pairs])
        wanted = {*request.requested_output_names(), *self._states}
        return self._response([self._tensor(name, array) for name, array in pairs if name in wanted])


def _inputs(request: InferenceRequest) -> dict[str, Any]:
    return {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}


def _numpy_name(data_type: str) -> str:
    from alipes.worker.triton.datatypes import triton_string_to_numpy

    return np.dtype(triton_string_to_numpy(data_type)).name
