"""The picture: how alike sentences are to the known questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # a file is drawn, no window opened

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt


def draw(scores: npt.NDArray[np.float32], sentences: Sequence[str], known: Sequence[str], output: Path) -> Path:
    """Draws scores `[sentences, known]`, the best of each sentence framed and written, and gives the file."""
    size = (0.42 * len(known) + 4.5, 0.42 * len(sentences) + 3.5)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    image = axes.imshow(scores, cmap="viridis", vmin=min(0.0, float(scores.min())), vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(known)), known, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(sentences)), sentences)
    for row, best in enumerate(np.argmax(scores, axis=1)):
        axes.add_patch(plt.Rectangle((best - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="tab:red", linewidth=1.5))
        axes.text(best, row, f"{scores[row, best]:.2f}", ha="center", va="center", fontsize=7)
    axes.set_title("Cosine of each sentence with each known question; framed: the nearest")
    figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(output, dpi=120)
    plt.close(figure)
    return output
