"""A model in a repository: its versions, its inputs and outputs, its configuration, and the export of a version."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from alipes.config.named import Named
from alipes.errors import AlipesError
from alipes.progress.work import task
from alipes.repository.arguments import check_version
from alipes.repository.layout import MAX_VERSION_DIGITS, check_model_name
from alipes.repository.model_config import ModelConfig
from alipes.repository.platform import SERVED, Platform, conventions
from alipes.repository.publish import publish_version
from alipes.repository.store.base import NoFilesFoundError, NotWritten
from alipes.repository.tensors import ExposedTensor, exposed

if TYPE_CHECKING:
    from alipes.repository.chain import Chain
    from alipes.repository.declare import Shapes, Side
    from alipes.repository.model_repository import ModelRepository
    from alipes.repository.store.base import Store

__all__ = ["Model"]

_log = logging.getLogger(__name__)
_VERSION = re.compile(rf"0|[1-9][0-9]{{0,{MAX_VERSION_DIGITS - 1}}}")


class Model:
    """One model of a repository: `ModelRepository.add` gives it, `export_version` writes it, `a >> b` joins two.

    Attributes:
        name: Its name, which is that of its folder.
        repository: Where it is.
        platform: What it is exported as.
        config: Its `config.pbtxt` as an object: `model.config.max_batch_size = 8`, then `model.config.write()`.
    """

    def __new__(cls, name: str, repository: ModelRepository, platform: Platform) -> Self:
        """An ensemble is a model of a kind of its own."""
        if cls is Model and platform is Platform.ENSEMBLE:
            from alipes.repository.ensemble import EnsembleModel

            return object.__new__(EnsembleModel)  # type: ignore[return-value]
        return object.__new__(cls)

    def __init__(self, name: str, repository: ModelRepository, platform: Platform) -> None:
        """Opens the model; nothing is written before the first export. `ModelRepository.add` is the usual way.

        Raises:
            RepositoryError: If the name is none that a folder can have.
            ConfigError: If its configuration cannot be read or is that of another model.
        """
        check_model_name(name)
        self.name = name
        self.repository = repository
        self.platform = Platform(platform)
        self._unwritten = False
        self.config = self._make_config()

    def _make_config(self) -> ModelConfig:
        return ModelConfig(self)

    def __repr__(self) -> str:
        """Name, platform and place."""
        return f"{type(self).__name__}({self.name!r}, {self.platform.name}, {str(self.fs)!r})"

    def __eq__(self, other: object) -> bool:
        """The same entry of the same repository."""
        if not isinstance(other, Model):
            return NotImplemented
        mine, theirs = (self.name, self.platform), (other.name, other.platform)
        return mine == theirs and self.repository is other.repository

    def __hash__(self) -> int:
        """By name and platform."""
        return hash((self.name, self.platform))

    def __rshift__(self, other: Model | Chain) -> Chain:
        """This model and, behind it, another one: `(a >> b).export("both")` makes one model of the two."""
        from alipes.repository.chain import pipe

        return pipe(self, other)

    @property
    def fs(self) -> Store:
        """Where the repository's files lie."""
        return self.repository.fs

    @property
    def is_new(self) -> bool:
        """Whether it was added and nothing of it was written yet."""
        return self._unwritten and self.config._seen is None

    @property
    def versions(self) -> list[int]:
        """The versions that there are, ascending."""
        return sorted(int(name) for name in self._names() if _VERSION.fullmatch(name))

    @property
    def inputs(self) -> dict[str, ExposedTensor]:
        """The inputs by name, as `pipe` and `add_input` of an ensemble take them."""
        return self._exposed("input")

    @property
    def outputs(self) -> dict[str, ExposedTensor]:
        """The outputs by name."""
        return self._exposed("output")

    def _exposed(self, side: Side) -> Named[ExposedTensor]:
        tensors = {tensor.name: exposed(self, self.config, tensor) for tensor in getattr(self.config, side)}
        return Named(tensors, f"model '{self.name}'", side)

    def _names(self) -> list[str]:
        try:
            return self.fs.list(self.name)
        except NoFilesFoundError:
            return []

    def export_version(  # noqa: PLR0913 - scripts call it so
        self,
        model_fn: Any,
        version: int | None = None,
        input_shapes: Shapes = None,
        output_names: Sequence[str] | None = None,
        verbose: int = 0,
        *,
        max_batch_size: int | None = None,
        progress: bool | None = None,
        **options: Any,
    ) -> str:
        """Write one more version of the model: all of it or, where anything fails, nothing.

        Args:
            model_fn: What to export, as the platform takes it. `"onnx"`: a `torch.nn.Module`, a model of scikit-learn
                or the path of an ONNX file. `"python"`: a function on arrays, or one, or a class, whose annotations say
                what it takes and gives, as under `@alipes.model`; it may use modules, functions, classes, arrays and
                plain constants of its script. Or the path of a `model.py`. None for an ensemble.
            version: Its number; None for one more than the highest. A version that exists is replaced as a whole.
            input_shapes: Shapes by input name, or in the order of the model's arguments, each with its batch axis; None
                or -1 is a size that requests choose. Needed the first time, unless the model itself says them; later,
                what is given must be the same.
            output_names: Names of the outputs; `output_0` and so on where left out.
            verbose: Whether the framework's exporter may print what it does.
            max_batch_size: Rows that may run together, from several requests (dynamic batching): every shape begins
                with None then. 0 for no batching; None leaves the configuration as it is, at first without batching.
            progress: False shows no line with the steps, which a terminal or a notebook is shown otherwise.
            options: `input_dtypes`, the datatypes of inputs where they are not FP32; `examples`, `check`, `tolerance`,
                and what the platform's exporter takes.

        Returns:
            The path of what was written, from the repository's root: `my-classifier/1/model.onnx`.

        Raises:
            NoExporter: If nothing here exports this kind of object to this platform.
            ExportError: If the export fails, or what was written gives other numbers than what it was made of.
            ConfigError: If a server would refuse the configuration.
            RepositoryUseError: If another process has changed the model meanwhile in a way that does not fit.

        Example:
            >>> import numpy as np
            >>> from alipes import ModelRepository
            >>> def sizes(words):
            ...     return np.array([[len(word) for word in row] for row in words], np.int32)
            >>> model = ModelRepository("models").add("sizes", platform="python")
            >>> model.export_version(
            ...     sizes,
            ...     input_shapes={"words": (None, 3)},
            ...     input_dtypes={"words": "BYTES"},
            ...     output_names=["sizes"],
            ...     max_batch_size=32,
            ... )
            'sizes/1/model.py'
            >>> model.inputs["words"].shape, model.outputs["sizes"].datatype, model.config.max_batch_size
            ((None, 3), 'INT32', 32)
        """
        from alipes.repository.export.find import find_exporter
        from alipes.repository.export.request import ExportRequest

        check_version(self.name, version)
        exporter = find_exporter(model_fn, self)
        draft = self.config._draft()
        if max_batch_size is not None:
            draft.batch_up_to(max_batch_size)
        # What the framework prints stands for the line, which it would tear.
        shown = False if verbose else progress
        with task(f"exporting model '{self.name}'", show=shown), self._undone_if_it_fails(), self.fs.stage() as folder:
            prepared = folder / "version"
            prepared.mkdir()
            request = ExportRequest.of(draft, prepared, input_shapes, output_names, verbose=verbose, options=options)
            exporter.run(model_fn, request)
            draft.validate()
            written = publish_version(self, draft, prepared, version)
        if self.platform not in SERVED:
            offered = ", ".join(one.name for one in Platform if one in SERVED)
            _log.warning(
                "model '%s' was exported as %s, which alipes serve does not run yet; it runs %s",
                self.name,
                self.platform.name,
                offered,
            )
        return f"{self.name}/{written}/{conventions[self.platform]}"

    @contextmanager
    def _undone_if_it_fails(self) -> Iterator[None]:
        """Leaves no empty folder behind a failed export, and says of a full disk where it is."""
        try:
            yield
        except BaseException as error:
            # A server that follows the repository would wait for a model there and not be ready.
            self.fs.remove_empty(self.name)
            if isinstance(error, OSError) and not isinstance(error, AlipesError):
                raise NotWritten(
                    f"export of model '{self.name}' to {self.fs}: {error.strerror or error}; nothing was written"
                ) from error
            raise
