"""One export: what is wanted, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alipes.repository.export.checked_arguments import checked_names, checked_options, checked_shapes
from alipes.repository.export.leniency import Check, default_check

if TYPE_CHECKING:
    from alipes.repository.declare import Shapes
    from alipes.repository.model_config import ModelConfig

__all__ = ["ExportRequest"]


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What `Model.export_version` was asked for.

    Attributes:
        config: The model's configuration; a copy, which becomes the model's if everything succeeds.
        folder: Where the version's files go; empty.
        input_shapes: Shapes by name or in order, with the batch axis; None where they are known.
        output_names: Names of the outputs; None where left out.
        examples: Tensors to run the model on, by input name or in order; None for random ones.
        input_dtypes: Element types of the inputs, by name or in order; None for what the model suggests.
        check: Whether what was written is run and compared with what it was made of; `warn` publishes it anyway.
        tolerance: Largest difference, in units of the largest number compared; None for what the datatype allows.
        verbose: Whether the framework may print what it does.
        options: For the exporter.
    """

    config: ModelConfig
    folder: Path
    input_shapes: Shapes = None
    output_names: Sequence[str] | None = None
    examples: Mapping[str, Any] | Sequence[Any] | None = None
    input_dtypes: Mapping[str, object] | Sequence[object] | None = None
    check: Check = field(default_factory=default_check)
    tolerance: float | None = None
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        config: ModelConfig,
        folder: Path,
        input_shapes: Shapes,
        output_names: Sequence[str] | None,
        *,
        verbose: int,
        options: Mapping[str, Any],
    ) -> ExportRequest:
        """From the arguments of `export_version`.

        Raises:
            ExportError: If one of them is of a wrong type; it is named.
        """
        known = checked_options(config.name, options)
        rest = {name: value for name, value in options.items() if name not in known}
        shapes, names = checked_shapes(config.name, input_shapes), checked_names(config.name, output_names)
        return cls(config, folder, shapes, names, verbose=bool(verbose), options=rest, **known)
