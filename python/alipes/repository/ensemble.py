"""A model made of others: which tensor of which model is joined to which."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from alipes.config.schema import ModelConfig as Message
from alipes.errors import ConfigError
from alipes.repository.arguments import check_type
from alipes.repository.declare import Side, add_tensor, datatype_number
from alipes.repository.edges import check_edge, narrow
from alipes.repository.ensemble_config import LATEST, EnsembleConfig
from alipes.repository.ensemble_names import TensorNames
from alipes.repository.model import Model
from alipes.repository.platform import Platform
from alipes.repository.tensors import ExposedTensor, exposed, exposed_shape, put_shape

__all__ = ["EnsembleModel"]

_log = logging.getLogger(__name__)


class EnsembleModel(Model):
    """An ensemble of a repository. Every join is checked when it is made, and the whole when it is exported.

    `(a >> b).export("both")` makes one of models in a row; here each tensor is joined by hand.

    Examples:
        >>> from alipes import ModelRepository
        >>> def doubled(x):
        ...     return x * 2
        >>> repo = ModelRepository("models")
        >>> first, second = (repo.add(name, platform="python") for name in ("first", "second"))
        >>> for model in (first, second):
        ...     _ = model.export_version(doubled, input_shapes={"x": (None, 4)}, output_names=["y"])
        >>> both = repo.add("both", platform="ensemble")
        >>> _ = both.add_input(first.inputs["x"])
        >>> both.pipe(first.outputs["y"], second.inputs["x"])
        >>> _ = both.add_output(second.outputs["y"], key="result")
        >>> both.export_version(None)
        'both/1/model.empty'
        >>> list(both.inputs), list(both.outputs)
        (['x'], ['result'])
    """

    config: EnsembleConfig

    def _make_config(self) -> EnsembleConfig:
        return EnsembleConfig(self)

    @property
    def models(self) -> list[Model]:
        """The models of the steps, in their order.

        Raises:
            KeyError: If one of them is no longer in the repository.
        """
        return [self.repository.models[step.model_name] for step in self.config.steps]

    def add_input(self, input: ExposedTensor, version: int | None = None, key: str | None = None) -> ExposedTensor:
        """Let requests bring a model's input.

        Args:
            input: An input of a model of the same repository.
            version: Which version of it; None for the one that is a step, or the newest.
            key: What the ensemble calls it; the input's own name where left out. The name of an input that the ensemble
                has feeds both from one tensor.

        Returns:
            The ensemble's input.

        Raises:
            ConfigError: If it is fed already, the name is taken, or what shares the name does not fit.
        """
        self._check_end(input, "input")
        step = self._find(input.model, version)
        name = key or input.name
        self._check_not_fed(step, input, repr(name))
        declared = self._tensors.declared("input", name)
        if declared is None:
            if self._tensors.blocked(name) is not None:
                raise self._error(
                    f"{self._producer(name)} -> '{name}' and the requests' '{name}' -> {input}: two tensors of one "
                    "name; key= gives another"
                )
        elif key is None:
            raise self._error(
                f"'{name}' -> {input}: the ensemble has an input '{name}' already; key='{name}' feeds both from it, "
                "any other key makes one more input"
            )
        else:
            check_edge(self.name, exposed(self, self.config, declared), input)
        step = self._ensure(input.model, version)
        if declared is None:
            self._tensors.make_room(name)
        step.input_map[input.name] = name
        return self._declare("input", name, input)

    def add_output(self, output: ExposedTensor, version: int | None = None, key: str | None = None) -> ExposedTensor:
        """Answer requests with a model's output, which may feed other models too.

        Args:
            output: An output of a model of the same repository.
            version: Which version of it; None for the one that is a step, or the newest.
            key: What the ensemble calls it; the output's own name where left out, with the model's in front where
                requests see another tensor of that name.

        Returns:
            The ensemble's output.

        Raises:
            ConfigError: If it is an output already, or the name is taken.
        """
        self._check_end(output, "output")
        step = self._find(output.model, version)
        present = step.output_map.get(output.name) if step is not None else None
        if present is not None and self._tensors.declared("output", present) is not None:
            raise self._error(f"{output} is the ensemble's output '{present}' already")
        name = key or self._tensors.for_output(output, present)
        if present != name:
            self._check_free(name, output)
        if key is None and name != output.name:
            reason = self._tensors.blocked(output.name)
            _log.warning("ensemble '%s': %s is answered as '%s': %s", self.name, output, name, reason)
        step = self._ensure(output.model, version)
        if present != name:
            self._tensors.make_room(name)
        if present is not None and present != name:
            self._tensors.rename(present, name)
        step.output_map[output.name] = name
        return self._declare("output", name, output)

    def pipe(
        self,
        outbound: ExposedTensor,
        inbound: ExposedTensor,
        key: str | None = None,
        *,
        outbound_version: int | None = None,
        inbound_version: int | None = None,
    ) -> None:
        """Feed an output of one model to an input of another. One output may feed many inputs.

        Args:
            outbound: An output of a model of the same repository.
            inbound: An input of another.
            key: What the tensor in between is called; the output's name where left out, with the model's in front
                where that is taken.
            outbound_version: Which version gives it; None for the one that is a step, or the newest.
            inbound_version: Which version takes it, likewise.

        Raises:
            ConfigError: If the two do not fit, the input is fed already, or the name is taken.
        """
        self._check_end(outbound, "output")
        self._check_end(inbound, "input")
        check_edge(self.name, outbound, inbound)
        giver = self._find(outbound.model, outbound_version)
        present = giver.output_map.get(outbound.name) if giver is not None else None
        if present is not None and key not in (None, present):
            raise self._error(f"{outbound} -> {inbound}: {outbound} is called '{present}' already, not '{key}'")
        name = present or key or self._tensors.for_join(outbound)
        if present is None:
            self._check_free(name, outbound)
        taker = self._find(inbound.model, inbound_version)
        self._check_not_fed(taker, inbound, f"{outbound} ('{name}')", unless=present)
        giver = self._ensure(outbound.model, outbound_version)
        taker = self._ensure(inbound.model, inbound_version)
        if present is None:
            self._tensors.make_room(name)
        giver.output_map[outbound.name] = name
        taker.input_map[inbound.name] = name

    def add_streaming_inputs(
        self,
        inputs: ExposedTensor | Sequence[ExposedTensor],
        stream_size: int,
        batch_size: int = 1,
        name: str | None = None,
        streams_per_gpu: int = 1,
        *,
        platform: Platform | str = Platform.SNAPSHOTTER,
    ) -> ExposedTensor:
        """Let requests bring what is new of a signal, and give these inputs their whole windows of it.

        A snapshotter is added to the repository: see `alipes.streaming.make_streaming_input_model`. Each call adds one,
        so inputs may have windows of different lengths, or different strides; a request then brings an update for each.

        Args:
            inputs: Inputs of models of the same repository, which take their channels of the update in this order.
            stream_size: New samples of each window.
            batch_size: Windows of a request.
            name: What to call the snapshotter; `snapshotter` where left out. A name that is taken gets a number.
            streams_per_gpu: Instances, and with them sequences at a time, of an exported snapshotter.
            platform: `SNAPSHOTTER` for the server's own; `ONNX` or `TORCHSCRIPT` for one that other servers run.

        Returns:
            The ensemble's input: `snapshot_update`, or `<snapshotter>.snapshot_update` where that is taken.

        Raises:
            ConfigError: If the sizes do not fit the inputs, or one of them is fed already. Nothing is changed then.
        """
        from alipes.repository.streaming.join import add_streaming_inputs

        tensors = [inputs] if isinstance(inputs, ExposedTensor) else list(inputs)
        for tensor in tensors:
            self._check_end(tensor, "input")
        sizes = (stream_size, batch_size)
        return add_streaming_inputs(self, tensors, sizes, name, streams_per_gpu, Platform(platform))

    def add_streaming_output(  # noqa: PLR0913 - scripts call it so
        self,
        output: ExposedTensor,
        update_size: int,
        num_updates: int,
        batch_size: int | None = None,
        name: str | None = None,
        streams_per_gpu: int = 1,
        *,
        platform: Platform | str = Platform.AVERAGER,
        unbiased_start: bool = False,
    ) -> ExposedTensor:
        """Answer requests with the mean of an output's overlapping predictions.

        An averager is added to the repository: see `alipes.streaming.make_streaming_output_model`.

        Args:
            output: An output of a model of the same repository.
            update_size: Samples by which each prediction is ahead of the one before it.
            num_updates: Predictions that make a mean.
            batch_size: Predictions of a request; None for as many as the output says.
            name: What to call the averager; `aggregator` where left out. A name that is taken gets a number.
            streams_per_gpu: Instances, and with them sequences at a time, of an exported averager.
            platform: `AVERAGER` for the server's own; `ONNX` or `TORCHSCRIPT` for one that other servers run.
            unbiased_start: Whether the first means are those of the predictions that there are; otherwise those that
                never came count as zero.

        Returns:
            The ensemble's output: `output_stream`, or `<averager>.output_stream` where that is taken.

        Raises:
            ConfigError: If the sizes do not fit the output. Nothing is changed then.
        """
        from alipes.repository.streaming.join import add_streaming_output

        self._check_end(output, "output")
        sizes = (update_size, num_updates, batch_size)
        return add_streaming_output(
            self, output, sizes, name, streams_per_gpu, Platform(platform), unbiased_start=unbiased_start
        )

    # --------------------------------------------------------------------------------- for what joins many at once

    def check_unfed(self, tensor: ExposedTensor) -> None:
        """Check that nothing feeds an input yet.

        Raises:
            ConfigError: With what feeds it.
        """
        self._check_not_fed(self._find(tensor.model, None), tensor, "a snapshot")

    def shows(self, name: str) -> bool:
        """Whether requests bring or get a tensor of this name."""
        return self._tensors.is_visible(name)

    # -------------------------------------------------------------------------------------------------- the steps

    def _find(self, model: Model, version: int | None) -> Message | None:
        """The step that is meant, where there is one."""
        steps = [step for step in self.config.steps if step.model_name == model.name]
        if version is None and len(steps) > 1:
            versions = ", ".join(str(step.model_version) for step in steps)
            raise self._error(f"model '{model.name}' is a step in the versions {versions}: say which version is meant")
        return next((step for step in steps if version in (None, step.model_version)), None)

    def _ensure(self, model: Model, version: int | None) -> Message:
        step = self._find(model, version)
        if step is not None:
            return step
        if version not in (None, LATEST) and version not in model.versions:
            versions = ", ".join(map(str, model.versions)) or "none yet"
            raise self._error(f"model '{model.name}' has no version {version}; it has {versions}")
        self._match_batching(model)
        return self.config.add_step(model, version)

    def _match_batching(self, model: Model) -> None:
        """The ensemble batches where all its models do, up to what the least of them takes."""
        theirs, ours = model.config.max_batch_size, self.config.max_batch_size
        if not self.config.steps:
            self.config.max_batch_size = min(theirs, ours) if ours else theirs
        elif ours > 0:
            self.config.max_batch_size = min(theirs, ours)

    # ---------------------------------------------------------------------------------------------------- the names

    @property
    def _tensors(self) -> TensorNames:
        return TensorNames(self.config)

    def _declare(self, side: Side, name: str, tensor: ExposedTensor) -> ExposedTensor:
        declared = self._tensors.declared(side, name)
        if declared is None:
            declared = add_tensor(self.config, side, name, tensor.shape, tensor.datatype)
        else:
            put_shape(self.config, declared, narrow(exposed_shape(self.config, declared), tensor.shape))
        return exposed(self, self.config, declared)

    def _producer(self, name: str) -> str | None:
        """`model.output` of what is called so; None where nothing is computed under the name."""
        found = self._tensors.producer(name)
        return None if found is None else f"{found[0].model_name}.{found[1]}"

    def _check_free(self, name: str, tensor: ExposedTensor) -> None:
        reason = self._tensors.blocked(name)
        if reason is not None:
            raise self._error(f"{tensor} cannot be called '{name}': {reason}; key= gives another name")

    # ---------------------------------------------------------------------------------------------------- the checks

    def _check_end(self, tensor: ExposedTensor, side: Side) -> None:
        """The end of an edge exists where it is said to be, and is on the right side of its model."""
        whole = "; (a >> b).export('name') joins whole models" if isinstance(tensor, Model) else ""
        check_type(side, tensor, ExposedTensor, f"an {side} such as model.{side}s['name']{whole}")
        model = tensor.model
        if model == self:
            raise self._error(f"{tensor}: an ensemble cannot be a step of itself")
        if model.repository is not self.repository:
            raise self._error(f"{tensor} is in the repository {model.fs}, the ensemble in {self.fs}")
        present = model.inputs if side == "input" else model.outputs
        if tensor.name not in present:
            other = model.outputs if side == "input" else model.inputs
            hint = f"it is an {'output' if side == 'input' else 'input'}" if tensor.name in other else "it is gone"
            raise self._error(f"{tensor} is no {side} of model '{model.name}': {hint}")
        now = present[tensor.name]
        if (now.shape, datatype_number(now.datatype)) != (tensor.shape, datatype_number(tensor.datatype)):
            raise self._error(f"{tensor} has changed since it was looked up: take it from model.{side}s again")

    def _check_not_fed(self, step: Message | None, tensor: ExposedTensor, by: str, unless: str | None = None) -> None:
        present = step.input_map.get(tensor.name) if step is not None else None
        if present is None or present == unless:
            return
        feeder = self._producer(present)
        source = f"{feeder} ('{present}')" if feeder else f"the ensemble's input '{present}'"
        raise self._error(f"{by} -> {tensor}: it is fed by {source} already")

    def _error(self, message: str) -> ConfigError:
        return ConfigError(f"in ensemble '{self.name}': {message}", key="ensemble_scheduling.step")
