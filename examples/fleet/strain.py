"""A detector and its witnesses: strain with the noise of a machine in it, and channels that hear the machine alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Series: TypeAlias = npt.NDArray[np.float32]

RATE_HZ = 1024
WITNESSES = 2
TAPS = 129
"""Length of the coupling from a witness to the strain. Its middle is now, so half of it lies in the future."""


@dataclass(frozen=True)
class Recording:
    """Some seconds of a detector.

    Attributes:
        strain: What it measured.
        witnesses: What the machine around it did meanwhile.
        quiet: What it had measured without that machine.
    """

    strain: Series
    witnesses: Series
    quiet: Series


def couplings() -> Series:
    """How each witness gets into the strain: around 90 Hz, and around 260 Hz."""
    times = (np.arange(TAPS) - TAPS // 2) / RATE_HZ
    shape = np.hanning(TAPS + 2)[1:-1]
    lines = [shape * np.cos(2 * np.pi * frequency * times) for frequency in (90.0, 260.0)]
    return np.stack(
        [line / np.sqrt((line**2).sum()) * loud for line, loud in zip(lines, (3.0, 1.5), strict=True)]
    ).astype(np.float32)


def recording(seconds: int, seed: int) -> Recording:
    """Makes a recording."""
    random = np.random.default_rng(seed)
    count = seconds * RATE_HZ
    witnesses = random.standard_normal((WITNESSES, count), np.float32)
    heard = sum(np.convolve(row, taps, "same") for row, taps in zip(witnesses, couplings(), strict=True))
    quiet = 0.05 * random.standard_normal(count, np.float32)
    return Recording((quiet + heard).astype(np.float32), witnesses, quiet)


def spectrum(series: Series) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Frequencies and power spectral density, as the mean over pieces of a second that overlap by half (Welch)."""
    length = RATE_HZ
    window = np.hanning(length)
    pieces = np.lib.stride_tricks.sliding_window_view(series.astype(np.float64), length)[:: length // 2]
    power = np.abs(np.fft.rfft(pieces * window)) ** 2
    return np.fft.rfftfreq(length, 1 / RATE_HZ), 2 * power.mean(axis=0) / (RATE_HZ * (window**2).sum())
