"""Puts streaming models before and behind the models of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from alipes.config.schema import copy_config
from alipes.errors import ConfigError
from alipes.repository.platform import Platform
from alipes.repository.streaming.make import make_streaming_input_model, make_streaming_output_model
from alipes.repository.streaming.sizes import means_of, windows_for
from alipes.repository.tensors import ExposedTensor

if TYPE_CHECKING:
    from alipes.repository.ensemble import EnsembleModel

__all__ = ["add_streaming_inputs", "add_streaming_output"]

_STATES = "states"
"""The parameter that lists what is streamed: `model/input`, by commas."""


def add_streaming_inputs(
    ensemble: EnsembleModel,
    inputs: Sequence[ExposedTensor],
    sizes: tuple[int, int],
    name: str | None,
    streams_per_gpu: int,
    platform: Platform,
) -> ExposedTensor:
    """Make a snapshotter for inputs of an ensemble's models, and let requests bring its updates.

    Args:
        ensemble: The ensemble.
        inputs: The inputs to feed.
        sizes: New samples of each window, and windows of a request.
        name: What to call the snapshotter.
        streams_per_gpu: Instances of an exported one.
        platform: What to make it as.

    Returns:
        The ensemble's input.
    """
    stride, batch = sizes
    windows_for(inputs, stride, batch)
    for tensor in inputs:
        _check_batch(ensemble, tensor, batch)
        ensemble.check_unfed(tensor)
    with _undone_if_it_fails(ensemble):
        model = make_streaming_input_model(
            ensemble.repository, inputs, stride, batch, name, streams_per_gpu, platform=platform
        )
        with _removed_if_it_fails(ensemble, model.name):
            key = _free_key(ensemble, "snapshot_update", model.name)
            update = ensemble.add_input(model.inputs["snapshot_update"], key=key)
            for window, tensor in zip(model.outputs.values(), inputs, strict=True):
                ensemble.pipe(window, tensor)
            states = ensemble.config.parameters[_STATES]
            listed = [states.string_value] if states.string_value else []
            states.string_value = ",".join([*listed, *(f"{one.model.name}/{one.name}" for one in inputs)])
    return update


def add_streaming_output(  # noqa: PLR0913 - what the method takes
    ensemble: EnsembleModel,
    output: ExposedTensor,
    sizes: tuple[int, int, int | None],
    name: str | None,
    streams_per_gpu: int,
    platform: Platform,
    *,
    unbiased_start: bool,
) -> ExposedTensor:
    """Make an averager for an output of one of an ensemble's models, and answer requests with its means.

    Args:
        ensemble: The ensemble.
        output: The output to average.
        sizes: Samples of an update, predictions of a mean, and predictions of a request or None.
        name: What to call the averager.
        streams_per_gpu: Instances of an exported one.
        platform: What to make it as.
        unbiased_start: Whether the first means are those of the predictions that there are.

    Returns:
        The ensemble's output.
    """
    update, updates, batch = sizes
    _check_batch(ensemble, output, means_of(output, update, updates, batch).batch)
    with _undone_if_it_fails(ensemble):
        model = make_streaming_output_model(
            ensemble.repository,
            output,
            update,
            updates,
            batch,
            name,
            streams_per_gpu,
            platform=platform,
            unbiased_start=unbiased_start,
        )
        with _removed_if_it_fails(ensemble, model.name):
            ensemble.pipe(output, model.inputs["update"])
            key = _free_key(ensemble, "output_stream", model.name)
            (means,) = model.outputs.values()
            return ensemble.add_output(means, key=key)


def _check_batch(ensemble: EnsembleModel, tensor: ExposedTensor, batch: int) -> None:
    """The model takes as many windows, or predictions, as a request brings."""
    largest = tensor.model.config.max_batch_size
    if 0 < largest < batch:
        raise ConfigError(
            f"in ensemble '{ensemble.name}': {tensor} takes batches up to {largest}, not {batch}", key="batch_size"
        )


def _free_key(ensemble: EnsembleModel, usual: str, model: str) -> str:
    """The ensemble's name of the stream: the usual one, or one with the model's name where requests see that."""
    return f"{model}.{usual}" if ensemble.shows(usual) else usual


@contextmanager
def _undone_if_it_fails(ensemble: EnsembleModel) -> Iterator[None]:
    before, seen = copy_config(ensemble.config._proto), ensemble.config._seen
    try:
        yield
    except BaseException:
        ensemble.config._adopt(before, seen)
        raise


@contextmanager
def _removed_if_it_fails(ensemble: EnsembleModel, name: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        ensemble.repository.remove(name)
        raise
