"""Why a point cannot be, or need not be, tried: known before any server is started for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from alipes.config.normalize import normalize
from alipes.config.platforms import complete_backend
from alipes.config.schema import ModelConfig
from alipes.config.validate import check_config
from alipes.errors import ConfigError
from alipes.tune.knobs import KNOBS, ROWS
from alipes.tune.machine import Machine
from alipes.tune.models import TunedModel
from alipes.tune.point import Point
from alipes.tune.variant import changed

__all__ = ["Checks"]


@dataclass
class Checks:
    """What is known of models and machine.

    Attributes:
        machine: Where trials run.
        models: The models by name.
        completed: Their configurations as a server completed them.
        rows: Rows in each request, by the model that gets requests.
        instance_bytes: By model, what an instance holds at least.
    """

    machine: Machine
    models: Mapping[str, TunedModel]
    completed: Mapping[str, ModelConfig]
    rows: Mapping[str, int] = field(default_factory=dict)
    instance_bytes: Mapping[str, int] = field(default_factory=dict)

    def reason(self, point: Point) -> str:
        """Why the point is left out; empty where it is not."""
        found = (self._of_model(name, point) for name in point.to_document())
        return next((reason for reason in found if reason), "") or self._ensembles(point) or self._memory(point)

    def _ensembles(self, point: Point) -> str:
        """An ensemble's batches go to its models as they are."""
        for model in self.models.values():
            largest = self.completed[model.name].max_batch_size if model.is_ensemble else 0
            for step in model.steps:
                batch = point.number(step, "max_batch_size")
                if batch is not None and batch < largest:
                    return f"ensemble '{model.name}' sends batches of up to {largest}, more than {batch} for '{step}'"
        return ""

    def _of_model(self, name: str, point: Point) -> str:
        model, completed = self.models.get(name), self.completed.get(name)
        if model is None or completed is None:
            return f"model '{name}' is not served"
        own = [knob for knob in point.of_model(name) if KNOBS[knob].write is not None]
        if model.is_ensemble and own:
            return f"'{name}' is an ensemble: {own[0]} is a matter of its models {', '.join(model.steps)}"
        return self._batching(name, point, completed) or (_refusal(model, point) if own else "")

    def _batching(self, name: str, point: Point, completed: ModelConfig) -> str:
        batch = point.number(name, "max_batch_size")
        present = completed.max_batch_size
        largest = present if batch is None else batch
        rows = point.number(name, ROWS) or self.rows.get(name, 1)
        values = point.of_model(name)
        preferred = values.get("preferred", ())
        wanted = max(preferred) if isinstance(preferred, tuple) and preferred else 0
        if batch and not present:
            return f"model '{name}' takes no batches"
        if present and batch == 0:
            return f"model '{name}' takes batches: its clients send a batch axis"
        if present and rows > largest:
            return f"requests have {rows} rows, more than the largest batch of {largest} of '{name}'"
        if wanted > largest:
            return f"a preferred batch of {wanted} is larger than the largest batch of {largest} of '{name}'"
        if values.get("queue_delay_us") and largest <= rows:
            return f"a batch of '{name}' is full with one request: there is nothing to wait for"
        return ""

    def _memory(self, point: Point) -> str:
        needed = {
            name: (point.number(name, "instances") or 1) * max(model.byte_size, self.instance_bytes.get(name, 0))
            for name, model in self.models.items()
        }
        total = sum(needed.values())
        if total <= self.machine.memory_bytes:
            return ""
        most = max(needed, key=lambda name: needed[name])
        return (
            f"the instances of '{most}' need {needed[most] / 2**20:,.0f} MiB at least, and the machine has "
            f"{self.machine.memory_bytes / 2**20:,.0f} MiB"
        )


def _refusal(model: TunedModel, point: Point) -> str:
    """What the server's own checks say of the configuration."""
    try:
        config = changed(model.written, point.of_model(model.name))
        if model.folder is not None:
            complete_backend(config, model.folder, model.name)
        normalize(config)
        check_config(config)
    except ConfigError as error:
        return str(error)
    return ""
