"""What a program of a framework is given to open a model, and what it gives back."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alipes.worker.loading import LoadError

if TYPE_CHECKING:
    import numpy as np

    from alipes.signature import Signature

__all__ = ["OpenedModel", "Opening", "reading"]


_ARRANGED = "arranged"
"""The folder in which `repository.model_store` arranges files that are served by themselves."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a program is given to open a model.

    Attributes:
        model_name: The model.
        file: Its file or folder, absolute.
        config: Its configuration as JSON has it, such as `config["output"][0]["name"]`. Inputs and outputs may be
            missing where the file is opened to be asked for them.
        device: `cpu`, or a GPU such as `cuda:0`.
        allows_pickles: Whether the operator allows the file to run code while it is read.
        adapts_threads: Whether an execution may take fewer threads than `threads` says, since nobody asked for them.
    """

    model_name: str
    file: Path
    config: Mapping[str, Any]
    device: str = "cpu"
    allows_pickles: bool = False
    adapts_threads: bool = False

    @property
    def threads(self) -> int:
        """Most threads for one execution: this instance's share of the cores, or what `OMP_NUM_THREADS` says."""
        stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        return int(stated) if stated.isdecimal() and int(stated) > 0 else os.cpu_count() or 1

    def parameter(self, key: str, default: str = "") -> str:
        """A parameter of the configuration; `default` where it is missing."""
        found = self.config.get("parameters", {}).get(key, {})
        return str(found.get("string_value", default))

    def flag(self, key: str, default: bool) -> bool:
        """A parameter that is `true` or `false`.

        Raises:
            LoadError: If it is anything else.
        """
        text = self.parameter(key, str(default)).lower()
        if text not in ("true", "false", "1", "0"):
            raise LoadError(f"parameter {key} of model '{self.model_name}' must be true or false, got '{text}'")
        return text in ("true", "1")

    def number(self, key: str, default: int, low: int = 1) -> int:
        """A parameter that is a whole number.

        Raises:
            LoadError: If it is none, or smaller than `low`.
        """
        text = self.parameter(key, str(default)).strip()
        if not text.isdecimal() or int(text) < low:
            raise LoadError(
                f"parameter {key} of model '{self.model_name}' must be a number from {low} on, got '{text}'"
            )
        return int(text)

    @property
    def bare_file(self) -> Path | None:
        """The file as its author called it, where it is served by itself; None where it lies in a repository."""
        is_arranged = self.file.is_symlink() and self.file.parent.resolve().parent.parent.name == _ARRANGED
        return self.file.readlink() if is_arranged else None

    def into_repository(self) -> str:
        """How a file that is served by itself comes into a repository, as the begin of a sentence; else empty."""
        return f"copy it to models/{self.model_name}/1/{self.file.name}, " if self.bare_file is not None else ""

    def then_serve(self) -> str:
        """What follows in that sentence."""
        return ", and serve the folder models" if self.bare_file is not None else ""

    def refuse(self, why: str) -> LoadError:
        """The error for a file that cannot be served: `raise opening.refuse("...")`."""
        called = (self.bare_file or self.file).name
        return LoadError(f"model '{self.model_name}' cannot be loaded from '{called}': {why}")

    def need_pickles(self, what: str) -> None:
        """Stops here unless the operator allows the file to run code.

        Args:
            what: What of the file runs code, such as "a pickle".

        Raises:
            LoadError: If it is not allowed; the text says how to allow it.
        """
        if not self.allows_pickles:
            raise self.refuse(
                f"it holds {what}, which can run any code while it is read; if you trust its author, start the server "
                f"with --allow-pickles={self.model_name}"
            )


class OpenedModel(ABC):
    """A model that its framework has opened.

    Attributes:
        signature: Its inputs and outputs; `None` where the file does not say, so that the configuration has to.
        joins: Whether rows of several requests can be run together.
        hidden: What the model writes into itself in one call and reads in the next, such as "2 variables (ReadValue)";
            empty where an answer depends on the inputs alone.
        steps: Whether such a model can `step`.
    """

    signature: Signature | None = None
    joins: bool = True
    hidden: str = ""
    steps: bool = False

    @property
    def adapts_threads(self) -> bool:
        """Whether each execution can have another number of threads, and no parameter of the model says which."""
        return False

    def set_threads(self, count: int) -> None:
        """Sets how many threads executions take from now on; for models that adapt them."""
        raise NotImplementedError

    @abstractmethod
    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Runs one batch.

        Args:
            inputs: An array for each input, by name: views of memory that belongs to the request. `BYTES` are arrays
                of `bytes` objects. Nothing of them may be kept or changed.

        Returns:
            An array for each output, by name.

        Raises:
            Exception: Any; its text is the error of the request.
        """

    def step(self, inputs: Mapping[str, np.ndarray], state: Any) -> tuple[Mapping[str, np.ndarray], Any]:
        """Runs one batch of a model with hidden state.

        Args:
            inputs: As `run` takes them.
            state: What the step before gave; `None` begins anew.

        Returns:
            The outputs, and the state after it, which no other call changes.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of the model, at the end of its instance."""
        return None


@contextmanager
def reading(opening: Opening) -> Iterator[None]:
    """Turns what a framework raises while it reads a file into one error that names the file.

    Raises:
        LoadError: If the block raises anything but a missing package.
    """
    try:
        yield
    except (LoadError, ModuleNotFoundError):
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:_MOST_CHARACTERS]
        why = f"the framework cannot read it ({type(error).__name__}: {text}); export the model again"
        raise opening.refuse(why) from error


_MOST_CHARACTERS = 600  # of a framework's own text: some print a stack of C++ frames
