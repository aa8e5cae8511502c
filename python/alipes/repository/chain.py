"""Models in a row, joined by the names of their tensors: `a >> b` becomes an ensemble that answers as one model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alipes.config.nearest import nearest_first
from alipes.config.schema import copy_config
from alipes.errors import ConfigError, RepositoryUseError
from alipes.repository.arguments import check_type
from alipes.repository.edges import check_edge
from alipes.repository.ensemble import EnsembleModel
from alipes.repository.model import Model
from alipes.repository.platform import Platform
from alipes.repository.tensors import ExposedTensor

if TYPE_CHECKING:
    from alipes.repository.model_repository import ModelRepository

__all__ = ["Chain", "pipe"]


def pipe(*models: Model | Chain) -> Chain:
    """Models in a row: `pipe(a, b, c)` is `a >> b >> c`; `export` makes a model of it.

    Args:
        models: Models of one repository, two or more.

    Raises:
        ConfigError: If what one gives does not fit what the next takes.
        RepositoryUseError: If one of them is no model, or they are fewer than two.
    """
    each: list[Model] = []
    for one in models:
        check_type("a part of a chain", one, (Model, Chain), 'a model of a repository, such as repo.models["name"]')
        each += one.models if isinstance(one, Chain) else [one]
    return Chain(each)


@dataclass(frozen=True, slots=True)
class _Joint:
    """How a model of a chain gets its inputs.

    Attributes:
        edges: From outputs of models before it to its inputs.
        brought: Inputs that requests bring.
    """

    edges: tuple[tuple[ExposedTensor, ExposedTensor], ...]
    brought: tuple[ExposedTensor, ...]


class Chain:
    """Models in a row, each of which takes what the one before it gives. Nothing is written before `export`.

    An input takes the output of its name, of the model before it or else of the nearest one further ahead; where no
    name fits, the one output goes to the one input. What is left, requests bring. The outputs are those of the last
    model.

    Attributes:
        models: The models, in their order.

    Examples:
        >>> from alipes import ModelRepository
        >>> def doubled(x):
        ...     return x * 2
        >>> repo = ModelRepository("models")
        >>> a, b, c = (repo.add(name, platform="python") for name in "abc")
        >>> for model in (a, b, c):
        ...     _ = model.export_version(doubled, input_shapes={"x": (None, 4)}, output_names=["y"])
        >>> a >> b >> c
        a >> b >> c
        >>> eightfold = (a >> b >> c).export("eightfold")
        >>> list(eightfold.inputs), list(eightfold.outputs)
        (['x'], ['y'])
    """

    models: tuple[Model, ...]

    def __init__(self, models: Sequence[Model]) -> None:
        """Checks that the models fit each other. `a >> b` and `pipe(a, b)` are the usual ways.

        Raises:
            ConfigError: If what one gives does not fit what the next takes.
            RepositoryUseError: If the models are fewer than two, or of several repositories, or one comes twice.
        """
        self.models = tuple(models)
        if len(self.models) < 2:
            raise RepositoryUseError(f"a chain has two models or more, such as pipe(a, b); got {len(self.models)}")
        first = self.models[0]
        for at, model in enumerate(self.models):
            if model.repository is not first.repository:
                raise RepositoryUseError(
                    f"{self}: '{first.name}' is in the repository {first.fs}, '{model.name}' in {model.fs}; "
                    "take both from one ModelRepository"
                )
            if model in self.models[:at]:
                raise RepositoryUseError(
                    f"{self}: '{model.name}' appears twice; an ensemble has one step for each model"
                )
        self._joints()

    def __repr__(self) -> str:
        """As it is written: `a >> b`."""
        return " >> ".join(model.name for model in self.models)

    def __rshift__(self, other: Model | Chain) -> Chain:
        """One more model, or chain, behind the last one."""
        return pipe(self, other)

    def export(self, name: str, version: int | None = None) -> EnsembleModel:
        """Write the chain as an ensemble, which is added to the repository where it is missing.

        Args:
            name: What to call it.
            version: Its number; None for one more than the highest.

        Returns:
            The ensemble.

        Raises:
            RepositoryUseError: If the name is taken by another kind of model.
            ConfigError: If an ensemble of the name has other inputs or outputs. Nothing is changed then.
        """
        repository = self.models[0].repository
        known = repository.models.get(name)
        ensemble = repository.add(name, Platform.ENSEMBLE)
        assert isinstance(ensemble, EnsembleModel), ensemble
        with _undone_if_it_fails(repository, ensemble, added=known is not ensemble and ensemble.is_new):
            before = _signature(ensemble)
            self._join(ensemble)
            if before not in (_signature(ensemble), {}):
                raise ConfigError(
                    f"ensemble '{name}' has {_described(before)}; {self} has {_described(_signature(ensemble))}: take "
                    f'another name, or call remove("{name}") first',
                    key="ensemble_scheduling.step",
                )
            ensemble.export_version(None, version)
        return ensemble

    def _join(self, ensemble: EnsembleModel) -> None:
        """Make the steps of an ensemble those of the chain."""
        config = ensemble.config
        for field in ("input", "output", "max_batch_size"):
            config._proto.ClearField(field)
        config._proto.ensemble_scheduling.ClearField("step")
        for joint in self._joints():
            for tensor in joint.brought:
                ensemble.add_input(tensor, key=tensor.name if ensemble.shows(tensor.name) else None)
            for outbound, inbound in joint.edges:
                ensemble.pipe(outbound, inbound)
        for output in self.models[-1].outputs.values():
            ensemble.add_output(output)

    def _joints(self) -> list[_Joint]:
        for model in self.models:
            for side, tensors in (("inputs", model.inputs), ("outputs", model.outputs)):
                if not tensors:
                    raise ConfigError(f"{self}: model '{model.name}' has no {side} yet: export it first", key="step")
        first = _Joint((), tuple(self.models[0].inputs.values()))
        return [first, *(self._joint(at) for at in range(1, len(self.models)))]

    def _joint(self, at: int) -> _Joint:
        model, before = self.models[at], self.models[at - 1]
        inputs, outputs = model.inputs, before.outputs
        optional = {tensor.name for tensor in model.config.input if tensor.optional}
        edges = {name: outputs[name] for name in inputs if name in outputs}
        if not edges:
            needed = [name for name in inputs if name not in optional]
            if len(outputs) != 1 or len(needed) != 1:
                raise self._unfitting(before, model)
            edges = dict(zip(needed, outputs.values(), strict=True))
        for further in reversed(self.models[: at - 1]):
            edges = {name: output for name, output in further.outputs.items() if name in inputs} | edges
        for name, output in edges.items():
            check_edge(str(self), output, inputs[name])
        brought = [tensor for name, tensor in inputs.items() if name not in edges and name not in optional]
        return _Joint(tuple((output, inputs[name]) for name, output in edges.items()), tuple(brought))

    def _unfitting(self, before: Model, model: Model) -> ConfigError:
        return ConfigError(
            f"{before.name} >> {model.name}: no output of '{before.name}' "
            f"({nearest_first('', before.outputs)}) has the name of an input of '{model.name}' "
            f"({nearest_first('', model.inputs)}); connect them with an ensemble's "
            "pipe(model.outputs[...], model.inputs[...])",
            key="ensemble_scheduling.step",
        )


def _signature(ensemble: EnsembleModel) -> dict[str, dict[str, object]]:
    """What requests see of an ensemble; nothing where it has no inputs and no outputs yet."""
    sides: dict[str, dict[str, object]] = {
        side: {name: (tensor.shape, tensor.datatype) for name, tensor in tensors.items()}
        for side, tensors in (("inputs", ensemble.inputs), ("outputs", ensemble.outputs))
    }
    return sides if any(sides.values()) else {}


def _described(signature: dict[str, dict[str, object]]) -> str:
    return " and ".join(f"the {side} {nearest_first('', names)}" for side, names in signature.items())


@contextmanager
def _undone_if_it_fails(repository: ModelRepository, ensemble: EnsembleModel, *, added: bool) -> Iterator[None]:
    before, seen = copy_config(ensemble.config._proto), ensemble.config._seen
    try:
        yield
    except BaseException:
        ensemble.config._adopt(before, seen)
        if added:
            repository.remove(ensemble)
        raise
