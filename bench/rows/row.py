"""A row of the table: contenders that do the same work in turn, and what alipes must reach among them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from bench.fleet import Fleet

#: A sample's detail: microseconds that all processes of a server used for a request. Other programs on the machine
#: change it far less than a rate.
CPU_US = "server_cpu_us_per_request"


class Better(Enum):
    """Which way a figure is good."""

    MORE = "more"
    LESS = "less"


@dataclass(frozen=True)
class Sample:
    """One measurement: the row's figure, and whatever else was seen."""

    value: float
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One contender of a row, ready to be measured for a number of seconds."""

    label: str
    measure: Callable[[float], Sample]


@dataclass(frozen=True)
class Target:
    """A comparison of two contenders within a round, or of one with a constant."""

    of: str
    #: The contender to divide by; None compares the figure itself.
    against: str | None = None
    #: The bound in the row's direction; None shows the comparison without judging it.
    bound: float | None = None


@dataclass(frozen=True)
class Facts:
    """What a row says about itself."""

    name: str
    title: str
    unit: str
    better: Better
    targets: tuple[Target, ...]
    #: The cell's time is cut into as many pieces, taken in turn: for latencies, which depend on where the system puts
    #: two threads and stay what they are for as long as a connection lives.
    pieces: int = 1
    #: Measured once, however many rounds there are.
    once: bool = False


class Row(Protocol):
    """What can be measured."""

    @property
    def facts(self) -> Facts:
        """What it is."""

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """Its contenders, started and checked; those that could not be started are left out.

        Raises:
            WrongAnswer: If a contender answers something else than the model does.
        """
