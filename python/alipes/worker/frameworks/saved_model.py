"""Runs SavedModels in a session, as TensorFlow Serving does.

A session takes half of the processor time that a signature of `tf.saved_model.load` takes for a small model (74 µs and
149 µs a call, TensorFlow 2.21, two cores), and reads inputs where they lie if their memory begins at a multiple of 64
bytes, which that of a request does.
Source: the parameters of Triton's TensorFlow backend, which the names of ours are from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from alipes.worker.frameworks.graph_writes import written
from alipes.worker.frameworks.opened import OpenedModel, Opening, reading
from alipes.worker.frameworks.saved_model_file import find_graph, find_signature, ports_of, tag

if TYPE_CHECKING:
    import numpy as np

    from alipes.signature import Signature

__all__ = ["SavedModel", "newer_explained", "open_saved_model", "release"]

tensorflow: Any = import_module("tensorflow")  # by name, since type checkers need not have it
tensorflow.get_logger().setLevel("ERROR")  # it calls sessions deprecated, which it needs itself

_SIDE_BY_SIDE: Final = 1
"""Operations that run at the same time where no parameter says so.

A second thread for them wakes the other at each operation. Three layers of 4 to 16 units, on two cores that other
programs want, took 199 µs for a row where one thread took 128, and 1.8 times its processor time; four branches of three
layers of 64 units 217 and 158 µs (medians of calls in turns, TensorFlow 2.21). Threads within an operation cost nothing
there (130 µs): TensorFlow takes several for large ones alone, and these threads sleep while they wait.
"""

_MOST_NAMED: Final = 3
"""Operations that write, in the message about a model with hidden state."""


def open_saved_model(opening: Opening, folder: str) -> SavedModel:
    """Opens one signature of a SavedModel.

    Args:
        opening: What the server says.
        folder: Where it lies; may be one in TensorFlow's memory, such as `ram://model`.

    Raises:
        LoadError: If the folder cannot be read, lacks the signature, or that has element types clients cannot send.
    """
    file = f"{folder}/saved_model.pb"
    if not tensorflow.io.gfile.exists(file):
        raise opening.refuse("it is no SavedModel, whose folder holds saved_model.pb; save the model again")
    graph = find_graph(opening, tensorflow.io.gfile.GFile(file, "rb").read())
    signature = find_signature(opening, graph)
    ports, outputs = ports_of(opening, signature), _wanted(opening, signature)
    session = tensorflow.compat.v1.Session(graph=tensorflow.Graph(), config=_config(opening))
    made_by = graph.meta_info_def.tensorflow_version
    with newer_explained(opening, "tensorflow", made_by, tensorflow.__version__), session.graph.as_default():
        tensorflow.compat.v1.saved_model.load(session, [tag(opening)], folder)
    model = SavedModel(session, signature, ports, outputs)
    model.hidden = ", ".join(written(graph, signature)[:_MOST_NAMED])
    return model


class SavedModel(OpenedModel):
    """A signature of a SavedModel in a session of its own."""

    def __init__(self, session: Any, signature: Any, ports: Signature | None, outputs: list[str]) -> None:
        """Takes the session, the file's signature, ours where it says all shapes, and the names of wanted outputs."""
        self.signature = ports
        self._session = session
        self._inputs, self._outputs = sorted(signature.inputs), outputs
        fed = [signature.inputs[name].name for name in self._inputs]
        fetched = [signature.outputs[name].name for name in outputs]
        with session.graph.as_default():
            self._call = session.make_callable(fetched, feed_list=fed)

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Runs one batch; an error loses TensorFlow's list of the graph's nodes, and of the files that wrote them."""
        try:
            found = self._call(*(inputs[name] for name in self._inputs))
        except tensorflow.errors.OpError as error:
            raise ValueError(_reason(str(error.message))) from None
        return dict(zip(self._outputs, found, strict=True))

    def close(self) -> None:
        """Ends the session."""
        self._session.close()


def _reason(message: str) -> str:
    """What went wrong, of a message that begins with a headline and ends with the graph's nodes."""
    lines = [line for line in message.split("\n\t [[", maxsplit=1)[0].splitlines() if line.strip()]
    return lines[-1] if lines else "TensorFlow gave no reason"


def _wanted(opening: Opening, signature: Any) -> list[str]:
    """The outputs that the configuration lists, so that no others are computed; all where it lists none.

    Raises:
        LoadError: If it lists one that there is not, or other inputs: the file may not say enough to check the rest.
    """
    for side, known in (("input", signature.inputs), ("output", signature.outputs)):
        for tensor in opening.config.get(side, ()):
            if tensor["name"] not in known:
                raise opening.refuse(
                    f"the configuration has {side} '{tensor['name']}', the file's {side}s are: "
                    f"{', '.join(sorted(known))}"
                )
    return [tensor["name"] for tensor in opening.config.get("output", ())] or sorted(signature.outputs)


def _config(opening: Opening) -> Any:
    """What a session is told: how many threads, and which devices it may see."""
    intra = opening.number("TF_NUM_INTRA_THREADS", opening.threads, low=0)
    inter = opening.number("TF_NUM_INTER_THREADS", _SIDE_BY_SIDE, low=0)
    config = tensorflow.compat.v1.ConfigProto(
        intra_op_parallelism_threads=intra, inter_op_parallelism_threads=inter, use_per_session_threads=True
    )
    if opening.device == "cpu":
        config.device_count["GPU"] = 0
    else:
        config.gpu_options.visible_device_list = opening.device.partition(":")[2]
        config.gpu_options.allow_growth = True
    return config


@contextmanager
def newer_explained(opening: Opening, package: str, made_by: str, installed: str) -> Iterator[None]:
    """As `reading`, and says so where a newer release wrote the file.

    Args:
        opening: What the server says.
        package: What reads the file.
        made_by: The version of it that wrote the file; empty where that is not known.
        installed: The version that is here.

    Raises:
        LoadError: If the block raises.
    """
    with reading(opening):
        try:
            yield
        except Exception as error:
            if release(made_by) <= release(installed):
                raise
            raise opening.refuse(
                f"{package} {made_by} wrote it, and {installed} cannot read it "
                f"({' '.join(str(error).split())[:200]}): update {package}, or save the model with the installed one"
            ) from error


def release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; none for a text without."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
