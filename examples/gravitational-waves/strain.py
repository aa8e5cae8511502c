"""Synthetic strain of two detectors: coloured noise, and the chirps of inspirals that are put into it.

All strain is in units of 1e-21, so that its squares are ordinary numbers in single precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Samples: TypeAlias = npt.NDArray[np.float64]

RATE_HZ = 2048
DETECTORS = ("Hanford", "Livingston")

UNIT = 1e-21
LOWEST_HZ = 30.0
# G times the mass of the Sun, by the cube of the speed of light.
SUN_S = 4.925491e-6
# Light needs this long from one detector to the other.
LONGEST_DELAY_S = 0.010
SPACING_S = (6.0, 10.0)
LIGHTEST, HEAVIEST = 10.0, 30.0


@dataclass(frozen=True)
class Injection:
    """One inspiral that was put into the noise.

    Attributes:
        time_s: When it ends at the first detector, from the start of the data.
        chirp_mass: In masses of the Sun.
        snr: The signal-to-noise ratio that both detectors together have of it.
    """

    time_s: float
    chirp_mass: float
    snr: float


def noise_psd(frequencies: Samples) -> Samples:
    """The power spectral density of a detector of the second generation, in (1e-21)^2 / Hz; infinite where it is deaf.

    Source: the analytic fit to Advanced LIGO's design sensitivity, from 20 Hz on.
    """
    x = np.maximum(frequencies, 1e-3) / 215.0
    shape = x**-4.14 - 5.0 * x**-2 + 111.0 * (1.0 - x**2 + x**4 / 2.0) / (1.0 + x**2 / 2.0)
    return np.where(frequencies < 20.0, np.inf, 1e-49 * shape / UNIT**2)


def coloured_noise(samples: int, random: np.random.Generator) -> Samples:
    """Noise of that density."""
    psd = noise_psd(np.fft.rfftfreq(samples, 1 / RATE_HZ))
    # What the detector is deaf to is loud in it: as loud as at its lowest frequency.
    loudest = psd[np.isfinite(psd)][0]
    amplitude = np.sqrt(np.where(np.isfinite(psd), psd, loudest) * RATE_HZ / 2.0)
    white = np.fft.rfft(random.standard_normal(samples))
    return np.fft.irfft(white * amplitude, samples)


def chirp(chirp_mass: float, samples: int, phase: float = 0.0) -> Samples:
    """The last samples of an inspiral, in the Newtonian approximation; it ends with the last of them."""
    mass_s = chirp_mass * SUN_S
    left_s = np.arange(samples, 0, -1) / RATE_HZ
    frequency = (5.0 / (256.0 * left_s)) ** 0.375 * mass_s**-0.625 / np.pi
    # Where two stars of equal mass would touch, the approximation ends and so does the signal.
    last_hz = 1.0 / (6.0**1.5 * np.pi * mass_s * 2.0**1.2)
    heard = (frequency > LOWEST_HZ) & (frequency < last_hz)
    turned = -2.0 * (left_s / (5.0 * mass_s)) ** 0.625
    return np.where(heard, frequency ** (2.0 / 3.0) * np.cos(turned + phase), 0.0)


def overlap(one: Samples, other: Samples) -> float:
    """What two signals have in common, weighed by the noise; of a signal with itself, the square of its SNR."""
    frequencies = np.fft.rfftfreq(len(one), 1 / RATE_HZ)
    spectra = np.fft.rfft(one) * np.conj(np.fft.rfft(other)) / noise_psd(frequencies)
    return float(4.0 * spectra.real.sum() / (RATE_HZ * len(one)))


def strain(seconds: int, seed: int) -> tuple[npt.NDArray[np.float32], list[Injection]]:
    """Strain of shape `[2, samples]`, and what is in it."""
    noise, signals = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    data = np.stack([coloured_noise(seconds * RATE_HZ, noise) for _ in DETECTORS])
    injections = []
    time_s = 2.0 + signals.uniform(*SPACING_S) / 2.0
    while time_s < seconds - 1.0:
        injection = Injection(time_s, signals.uniform(LIGHTEST, HEAVIEST), signals.uniform(14.0, 22.0))
        _inject(data, injection, signals)
        injections.append(injection)
        time_s += signals.uniform(*SPACING_S)
    return data.astype(np.float32), injections


def _inject(data: Samples, injection: Injection, random: np.random.Generator) -> None:
    """Put an inspiral into both detectors, which hear it one after the other and not equally loud."""
    length = 2 * RATE_HZ
    loudness = random.uniform(0.6, 0.8)
    ends_s = injection.time_s, injection.time_s + random.uniform(-LONGEST_DELAY_S, LONGEST_DELAY_S)
    for row, share, end_s in zip(data, (loudness, np.sqrt(1.0 - loudness**2)), ends_s, strict=True):
        signal = chirp(injection.chirp_mass, length, random.uniform(0.0, 2.0 * np.pi))
        signal *= share * injection.snr / np.sqrt(overlap(signal, signal))
        end = int(end_s * RATE_HZ)
        row[end - length : end] += signal
