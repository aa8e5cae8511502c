"""The shipped example: a digit classifier's model repository, and scans that it was not trained on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from alipes.errors import RepositoryError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MODEL = "digits"
INPUT = "scan"
OUTPUT = "probabilities"

FOLDER = Path(__file__).with_name("digits")
REPOSITORY = FOLDER / "models"
REQUEST = FOLDER / "request.json"

# Darkest pixel of a scan; the model scales by it, so that clients send pixels as they were scanned.
INK = 16


@dataclass(frozen=True, slots=True)
class Digits:
    """Held-out scans and the digits that people wrote.

    Attributes:
        scans: UINT8 `[n, 8, 8]`, 0 (paper) to 16 (ink).
        labels: UINT8 `[n]`, 0 to 9.
    """

    scans: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]


def held_out() -> Digits:
    """The scans that training set aside."""
    import numpy as np

    with np.load(FOLDER / "held_out.npz") as arrays:
        return Digits(arrays["scans"], arrays["labels"])


def copy_to(folder: Path) -> None:
    """Copies the model repository, the scans and a request into a new folder.

    Raises:
        RepositoryError: If the folder exists and holds something.
        OSError: If it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RepositoryError(f"{folder} exists and is not an empty folder; name another one")
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
