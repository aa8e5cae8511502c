"""A model's `config.pbtxt` as an object: attributes that are checked when they are set and written as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from alipes.config.nearest import nearest
from alipes.config.normalize import normalize
from alipes.config.pbtxt import parse_pbtxt, to_pbtxt
from alipes.config.platforms import complete_backend
from alipes.config.schema import ModelConfig as Message
from alipes.config.schema import copy_config, descriptor, is_repeated, new_config
from alipes.config.validate import check_poll
from alipes.config.validate.batch_io import check_batch_io
from alipes.config.validate.tensors import check_tensors
from alipes.errors import ConfigError, RepositoryUseError
from alipes.repository.declare import add_tensor
from alipes.repository.instance_groups import add_group, find_group
from alipes.repository.platform import Platform, declare_platform, platform_of
from alipes.repository.store.base import NoFilesFoundError, PathExists
from alipes.repository.tensors import describe_shape, model_shape, put_shape

if TYPE_CHECKING:
    from alipes.repository.model import Model

__all__ = ["CONFIG_FILE", "ModelConfig"]

CONFIG_FILE = "config.pbtxt"

_IDENTITY = frozenset({"name", "platform", "backend", "default_model_filename"})


class ModelConfig:
    """The configuration of a model.

    Every field of Triton's model configuration is an attribute: `config.max_batch_size = 8` is checked at once,
    `config.sequence_batching.max_sequence_idle_microseconds = 25_000_000` changes the part in place, and
    `config.dynamic_batching = {"max_queue_delay_microseconds": 500}` replaces it. Nothing is on disk before `write`, or
    an export, which writes it too.
    """

    def __init__(self, model: Model, **fields: Any) -> None:
        """Reads the model's configuration, or begins one where there is none.

        Args:
            model: Whose it is.
            fields: Fields to set on top of what is read.

        Raises:
            ConfigError: If the file cannot be read, or belongs to a model of another name or kind.
        """
        object.__setattr__(self, "_model", model)
        object.__setattr__(self, "_proto", new_config())
        object.__setattr__(self, "_seen", None)
        self.reload()
        for name, value in fields.items():
            setattr(self, name, value)

    # ------------------------------------------------------------------------------------------------ attributes

    @property
    def model(self) -> Model:
        """The model whose configuration it is."""
        model: Model = object.__getattribute__(self, "_model")
        return model

    def __getattr__(self, name: str) -> Any:
        """A field, or a method, of the configuration message."""
        return getattr(object.__getattribute__(self, "_proto"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field of the configuration.

        Raises:
            ConfigError: If there is no such field, the value does not fit, or the field says what the model is.
        """
        field = descriptor().fields_by_name.get(name)
        if field is None:
            close = nearest(name, descriptor().fields_by_name)
            hint = f"did you mean '{close}'?" if close else None
            raise ConfigError(f"a model configuration has no field '{name}'", key=name, hint=hint)
        if name in _IDENTITY:
            raise ConfigError(f"'{name}' identifies model '{self._proto.name}' and cannot be changed", key=name)
        made = self._parsed(name, value)
        if name == "max_batch_size":
            self._batch(made.max_batch_size)
        elif is_repeated(field) or field.message_type is not None:
            self._proto.ClearField(name)
            self._proto.MergeFrom(made)
            if field.message_type is not None and not is_repeated(field) and value is not None:
                getattr(self._proto, name).SetInParent()
        else:
            setattr(self._proto, name, getattr(made, name))

    def __dir__(self) -> list[str]:
        """Methods and fields."""
        return sorted({*super().__dir__(), *descriptor().fields_by_name})

    def __repr__(self) -> str:
        """The text of the file."""
        return to_pbtxt(self._proto)

    __str__ = __repr__

    def _parsed(self, name: str, value: Any) -> Message:
        """A configuration with this field alone."""
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            value = list(value)
        try:
            return new_config(**{name: value})
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"'{name}' of model '{self._proto.name}' cannot be {value!r}: {error}", key=name
            ) from error

    def _batch(self, largest: int) -> None:
        """Let the model batch, or no more: the batch axis moves out of the declared sizes, or back into them."""
        proto = self._proto
        if largest < 0:
            raise ConfigError(f"'max_batch_size' must be non-negative value for {proto.name}", key="max_batch_size")
        tensors = [(side, tensor) for side in ("input", "output") for tensor in getattr(proto, side)]
        shapes = [model_shape(proto, tensor) for _, tensor in tensors]
        for (side, tensor), shape in zip(tensors, shapes, strict=True):
            if largest > 0 and shape[:1] != (None,):
                raise ConfigError(
                    f"model '{proto.name}' cannot batch: {side} '{tensor.name}' has shape {describe_shape(shape)}, "
                    "whose first axis is not variable",
                    key="max_batch_size",
                )
        moves = (largest > 0) != (proto.max_batch_size > 0)
        proto.max_batch_size = largest
        for (_, tensor), shape in zip(tensors, shapes, strict=True):
            if moves:
                put_shape(proto, tensor, shape)

    # --------------------------------------------------------------------------------------------------- methods

    def add_input(self, name: str, shape: Iterable[int | None], dtype: object = "float32", **fields: Any) -> Message:
        """Declare an input: its sizes with the batch axis, None for any size. Returns it, to change further."""
        return self._add("input", name, shape, dtype, fields)

    def add_output(self, name: str, shape: Iterable[int | None], dtype: object = "float32", **fields: Any) -> Message:
        """Declare an output, likewise."""
        return self._add("output", name, shape, dtype, fields)

    def add_instance_group(
        self, kind: str = "gpu", gpus: int | Sequence[int] | None = None, count: int = 1, name: str | None = None
    ) -> Message:
        """Add a group of instances, each a copy of the model that runs beside the others.

        Args:
            kind: `gpu`, `cpu`, `model` or `auto`. Without a GPU `alipes serve` runs all on the CPU and says so.
            gpus: A number for the first so many, or which ones; None for all.
            count: How many on each.
            name: What to call it; needed only to find it again.

        Returns:
            The group, to change further.

        Raises:
            ConfigError: If the kind is unknown, or a number too small.
        """
        return add_group(self._proto, kind, gpus, count, name)

    def scale_instance_group(self, count: int, name: int | str | None = None) -> None:
        """Set how many instances a group has.

        Args:
            count: How many.
            name: The group's name or index; None for the first.

        Raises:
            ConfigError: If there are no groups or none of that name, or the count is too small.
            IndexError: If there are fewer groups.
            TypeError: If the name is neither.
        """
        find_group(self._proto, name, count).count = count

    def batch_up_to(self, rows: int) -> None:
        """Let requests run together: sets `max_batch_size`, and dynamic batching where no scheduler is set.

        Args:
            rows: Rows of all of them, at most; 0 for no batching.

        Raises:
            ConfigError: If it is no such number, or a tensor has no variable first axis.
        """
        if isinstance(rows, bool) or not hasattr(rows, "__index__"):
            raise ConfigError(
                f"'max_batch_size' of model '{self._proto.name}' cannot be {rows!r}: expected a whole number of rows",
                key="max_batch_size",
            )
        self.max_batch_size = rows
        scheduler = self._proto.WhichOneof("scheduling_choice")
        if rows > 1 and scheduler is None:
            self._proto.dynamic_batching.SetInParent()
        elif rows == 0 and scheduler == "dynamic_batching":
            self._proto.ClearField("dynamic_batching")

    def validate(self) -> None:
        """Check the configuration as a server would.

        Raises:
            ConfigError: With the first thing that is wrong, in the server's words.
        """
        config = copy_config(self._proto)
        has_tensors = bool(config.input or config.output)
        # No path to look at: a model that is not exported yet has no files.
        complete_backend(config, Path("/"), config.name)
        normalize(config)
        check_poll(config, self._model.name, strict=has_tensors)
        check_tensors(config)
        check_batch_io(config)

    def write(self) -> None:
        """Check the configuration and replace the model's file by it.

        Raises:
            ConfigError: If a server would refuse it.
            RepositoryUseError: If the file has been changed elsewhere since it was read; `reload` reads it again.
        """
        self.validate()
        store = self._model.fs
        with store.lock():
            self._write_locked()

    def reload(self) -> None:
        """Read the file again. What was set and not written is lost.

        Raises:
            ConfigError: If the file cannot be read, or belongs to a model of another name or kind.
        """
        model = self._model
        text = self._on_disk()
        fresh = new_config(name=model.name)
        if text is None:
            declare_platform(fresh, model.platform)
        else:
            fresh = _parsed_file(model, text)
        self._adopt(fresh, text)

    # -------------------------------------------------------------------------------- for models and exporters

    def _add(self, side: Any, name: str, shape: Iterable[int | None], dtype: object, fields: dict[str, Any]) -> Message:
        tensor = add_tensor(self._proto, side, name, shape, dtype)
        for field, value in fields.items():
            setattr(tensor, field, value)
        return tensor

    def _on_disk(self) -> str | None:
        try:
            return str(self._model.fs.read(f"{self._model.name}/{CONFIG_FILE}"))
        except NoFilesFoundError:
            return None

    def _draft(self) -> Self:
        """A copy that an export works on, so that one that fails has changed nothing."""
        draft = object.__new__(type(self))
        object.__setattr__(draft, "_model", self._model)
        object.__setattr__(draft, "_proto", copy_config(self._proto))
        object.__setattr__(draft, "_seen", self._seen)
        return draft

    def _adopt(self, proto: Message, seen: str | None) -> None:
        """Take over a configuration in place: of what callers hold, only the fields that differ are replaced."""
        before, after = _fields(self._proto), _fields(proto)
        for name in {*before, *after}:
            if before.get(name) != after.get(name):
                part = new_config()
                part.CopyFrom(proto)
                for other in after:
                    if other != name:
                        part.ClearField(other)
                self._proto.ClearField(name)
                self._proto.MergeFrom(part)
        object.__setattr__(self, "_seen", seen)

    def _check_unchanged(self) -> str | None:
        """Checks that the file is unchanged, or was changed to the same. Returns its text."""
        now = self._on_disk()
        if now is not None and now not in (self._seen, to_pbtxt(self._proto)):
            raise self._changed()
        return now

    def _write_locked(self) -> None:
        now, text = self._check_unchanged(), to_pbtxt(self._proto)
        try:
            self._model.fs.swap(text, f"{self._model.name}/{CONFIG_FILE}", now)
        except PathExists as error:
            raise self._changed() from error
        object.__setattr__(self, "_seen", text)

    def _changed(self) -> RepositoryUseError:
        return RepositoryUseError(
            f"the configuration of model '{self._model.name}' was changed by another program since it was read: "
            "config.reload() reads it again; set your own changes again after that",
            model=self._model.name,
        )


def _fields(config: Message) -> dict[str, Any]:
    return {field.name: value for field, value in config.ListFields()}


def _parsed_file(model: Model, text: str) -> Message:
    path = Path(f"{model.name}/{CONFIG_FILE}")
    config = parse_pbtxt(text, path)
    # Both may be left out of a file; they follow from the folder and the model's file then.
    config.name = config.name or model.name
    if config.name != model.name:
        raise ConfigError(
            f"the configuration in folder '{model.name}' is that of model '{config.name}'; both names must be the same",
            path=path,
            key="name",
        )
    declared = platform_of(config)
    if declared is None and not (config.platform or config.backend):
        declare_platform(config, model.platform)
    elif declared is not model.platform:
        called = declared.name if isinstance(declared, Platform) else config.platform or config.backend
        raise ConfigError(
            f"model '{model.name}' is {called} in its configuration, not {model.platform.name}",
            path=path,
            key="platform",
        )
    return config
