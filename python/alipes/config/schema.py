"""The message classes of the model configuration, made from the descriptors that the extension module carries.

`proto/model_config.proto` is the only description of the format; no generated Python code stands beside it.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from alipes import _core

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.descriptor_pool import DescriptorPool

__all__ = [
    "ModelConfig",
    "copy_config",
    "descriptor",
    "enum_names",
    "enum_word",
    "is_map",
    "is_repeated",
    "new_config",
    "pool",
]

ModelConfig: TypeAlias = Any
"""A message `inference.ModelConfig`. Its class is made at run time, so type checkers know no more of it."""

_NAME = "inference.ModelConfig"

# Models load side by side, and messages of two classes made from one descriptor do not mix.
_making = threading.Lock()


def pool() -> DescriptorPool:
    """A pool with the project's own proto files, apart from the process-wide one that other packages fill."""
    with _making:
        return _make_pool()


@cache
def _make_pool() -> DescriptorPool:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    files = FileDescriptorSet.FromString(_core.descriptor_set())
    made = DescriptorPool()
    for file in files.file:
        made.Add(file)
    return made


def _config_class() -> Any:
    made_from = descriptor()
    with _making:
        return _make_class(made_from)


@cache
def _make_class(made_from: Descriptor) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(made_from)


def descriptor() -> Descriptor:
    """The descriptor of `inference.ModelConfig`."""
    return pool().FindMessageTypeByName(_NAME)


def new_config(**fields: Any) -> ModelConfig:
    """A configuration with the given fields and nothing else."""
    return _config_class()(**fields)


def copy_config(config: ModelConfig) -> ModelConfig:
    """A configuration of its own with the same content."""
    made = new_config()
    made.CopyFrom(config)
    return made


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    message = field.message_type
    return message is not None and message.GetOptions().map_entry


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether a field is a list or a map."""
    # `is_repeated` came with protobuf 6.31, which warns of `label`.
    label: Any = field
    return bool(field.is_repeated if hasattr(field, "is_repeated") else label.label == label.LABEL_REPEATED)


@cache
def enum_names(name: str) -> dict[int, str]:
    """The names of an enumeration by number, given its full name, for example `inference.DataType`."""
    values = pool().FindEnumTypeByName(name).values
    return {value.number: value.name for value in values}


def enum_word(message: Any, name: str) -> str:
    """The value of an enumeration field as its name, or as its number where a later release may know a name for it."""
    field = message.DESCRIPTOR.fields_by_name[name]
    number = getattr(message, name)
    return enum_names(field.enum_type.full_name).get(number, str(number))
