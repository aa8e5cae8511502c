"""When requests are sent: in a closed loop when the last one was answered, in an open loop when they are due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from alipes.errors import ConfigError
from alipes.loadtest.recorded import read_rates

__all__ = ["Closed", "Open", "Pace"]

_DAY_S: Final = 86_400.0
"""Length of a load that ends when it is stopped."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed loop: so many callers, each of which sends its next request when its last one was answered.

    Attributes:
        callers: How many; each has one request under way.
    """

    callers: int

    def __post_init__(self) -> None:
        """Checks the number."""
        if self.callers < 1:
            raise ConfigError(f"callers is {self.callers}: at least one has to send", key="callers")

    @property
    def value(self) -> float:
        """What tells levels of one kind apart."""
        return self.callers

    def engine_options(self) -> dict[str, Any]:
        """The same for the engine."""
        return {"callers": self.callers}

    def __str__(self) -> str:
        """For people."""
        return f"{self.callers} in flight"


@dataclass(frozen=True, slots=True)
class Open:
    """An open loop: requests are due by a schedule, whatever the server does, and latency counts from that moment.

    Attributes:
        pieces: Of the schedule: seconds, and requests per second at the beginning and at the end of each. The last one
            ends the load, unless they are repeated.
        intervals_s: Instead of pieces: seconds in front of each request, over and over.
        seed: For random arrivals (Poisson); `None` for even ones.
        in_flight: Most requests under way; what is due beyond waits.
        repeats: Whether the first piece follows the last one.
    """

    pieces: tuple[tuple[float, float, float], ...] = ()
    intervals_s: tuple[float, ...] = ()
    seed: int | None = None
    in_flight: int = 1024
    repeats: bool = False

    @classmethod
    def at(cls, rate: float, seed: int | None = None) -> Self:
        """A steady rate, in requests per second: even, or random with a seed."""
        if not rate > 0:
            raise ConfigError(f"the rate is {rate}: expected requests per second, above 0", key="rate")
        return cls(((_DAY_S, rate, rate),), seed=seed)

    @classmethod
    def bursts(cls, rate: float, peak: float, *, every_s: float, length_s: float, seed: int | None = None) -> Self:
        """A steady rate, and every so many seconds a burst of another one, in requests per second.

        Raises:
            ConfigError: If a rate is none, or bursts do not fit into their spans.
        """
        if not (rate >= 0 and peak > 0):
            raise ConfigError(f"the rates are {rate} and {peak}: expected requests per second, 0 or more", key="rate")
        if not 0 < length_s < every_s:
            raise ConfigError(f"bursts of {length_s} s do not fit into {every_s} s", key="length_s")
        rest = every_s - length_s
        return cls(((rest, rate, rate), (length_s, peak, peak)), seed=seed, repeats=True)

    @classmethod
    def recorded(cls, file: Path, *, compress: float = 1.0, scale: float = 1.0, seed: int | None = 0) -> Self:
        """The rates of a recorded day: lines of `time,rate`, between which the rate goes in straight lines.

        Args:
            file: Times are seconds, or dates and times as in ISO 8601; rates are requests per second. Its first line
                may name the columns.
            compress: How many times shorter it is made; 3600 makes an hour a second. Rates stay as they are.
            scale: What rates are multiplied with.
            seed: For random arrivals (Poisson); `None` for even ones.

        Raises:
            ConfigError: If the file cannot be read, or holds no rates.
        """
        if not (compress > 0 and scale > 0):
            raise ConfigError(f"compress is {compress} and scale {scale}: expected numbers above 0", key="compress")
        return cls(read_rates(file, compress, scale), seed=seed)

    @classmethod
    def replayed(cls, file: Path) -> Self:
        """The intervals of a file, one in each line, in microseconds."""
        try:
            spans = tuple(float(line) / 1e6 for line in file.read_text(encoding="utf-8").split())
        except (OSError, ValueError) as error:
            raise ConfigError(f"'{file}' cannot be read: {error}; expected microseconds, one number a line") from error
        if not spans or min(spans) < 0 or not any(spans):
            raise ConfigError(f"'{file}' holds no intervals: expected microseconds of 0 or more, not all 0")
        return cls(intervals_s=spans)

    @property
    def value(self) -> float:
        """The mean rate of its pieces, or of its intervals, in requests per second."""
        if self.intervals_s:
            return len(self.intervals_s) / sum(self.intervals_s)
        seconds = sum(piece[0] for piece in self.pieces)
        return sum(length * (first + last) / 2 for length, first, last in self.pieces) / seconds

    def engine_options(self) -> dict[str, Any]:
        """The same for the engine."""
        if self.intervals_s:
            return {"intervals_s": list(self.intervals_s), "in_flight": self.in_flight}
        return {
            "rates": list(self.pieces),
            "seed": self.seed,
            "in_flight": self.in_flight,
            "repeats": self.repeats,
        }

    def __str__(self) -> str:
        """For people."""
        if self.intervals_s:
            return f"{len(self.intervals_s):,} replayed intervals"
        kind = "even" if self.seed is None else "random"
        rates = {rate for piece in self.pieces for rate in piece[1:]}
        if len(rates) > 1:
            return f"{min(rates):,.10g} to {max(rates):,.10g}/s {kind}"
        return f"{self.value:,.10g}/s {kind}"


Pace: TypeAlias = Closed | Open


def spread(first: float, last: float, step: float) -> Sequence[float]:
    """Values from the first to the last, by steps."""
    if step <= 0 or last < first:
        raise ConfigError(f"{first}:{last}:{step} is no range: expected START:END:STEP, upwards")
    return [first + number * step for number in range(int((last - first) / step + 1e-9) + 1)]
