"""A model's output for a signal, against time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from alipes.errors import InvalidArgument
from alipes.plots.picture import COLOURS, finish, marker, picture

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["plot_stream", "thinned"]

POINTS: Final = 20_000
"""More than a picture has columns of dots several times over; an hour of samples is thinned to that many."""


def plot_stream(
    outputs: npt.ArrayLike | Mapping[str, npt.ArrayLike],
    *,
    sampling_rate: float,
    start: float = 0.0,
    title: str = "Network response vs. time",
    ylabel: str = "NN Output",
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Draws one output against time, or several, each under its name.

    Args:
        outputs: Values in their order; axes of length 1 are left out. Of a mapping, one line a name.
        sampling_rate: Values in a second.
        start: Seconds at which the first value stands, for instance the length of a window, at whose end it does.
        title: Stands above.
        ylabel: Stands beside the values.
        path: A file for the picture.

    Returns:
        The figure, of matplotlib.

    Raises:
        InvalidArgument: If an output has several axes, or none.
        Unsupported: If matplotlib is not installed.
    """
    import numpy as np

    named = outputs if isinstance(outputs, Mapping) else {"": outputs}
    if not sampling_rate > 0:
        raise InvalidArgument(f"sampling_rate is {sampling_rate}: it has to be more than 0 values a second")
    figure = picture()
    axes = figure.add_subplot()
    axes.set(title=title, xlabel="Time from start [s]", ylabel=ylabel)
    for number, (name, values) in enumerate(named.items()):
        array = np.asarray(values)
        # A single value is one moment, however many axes it has.
        line = np.squeeze(array) if array.size != 1 or not array.ndim else array.reshape(1)
        if line.ndim != 1 or not line.size:
            raise InvalidArgument(
                f"output {name!r} has shape {list(array.shape)}: one value for each moment can be drawn"
            )
        at, shown = thinned(line, POINTS)
        colour = COLOURS[number % len(COLOURS)]
        style = {"color": colour, "linewidth": 1.5, "marker": marker(len(shown)), "label": name or None}
        axes.plot(start + at / sampling_rate, shown, **style)
    if any(named):
        axes.legend(loc="best", fontsize="small")
    return finish(figure, path)


def thinned(line: npt.NDArray[Any], points: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Places and values of a line with at most so many points: of each stretch its least and its greatest value.

    A peak of a single sample stays, which a line through every n-th sample would lose.
    """
    import numpy as np

    if line.size <= points:
        return np.arange(line.size), line
    length = -(-line.size // (points // 2))
    edges = np.arange(0, line.size, length)
    least = [edge + int(np.argmin(line[edge : edge + length])) for edge in edges]
    greatest = [edge + int(np.argmax(line[edge : edge + length])) for edge in edges]
    places = np.unique(np.concatenate([least, greatest]))
    return places, line[places]
