"""The third figure's measurements: what is left in the strain when more predictions make a mean, and come later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from alipes import StreamClient
from models import Way
from strain import RATE_HZ, Recording, Series


@dataclass(frozen=True)
class Cleaned:
    """A strain without what the network has predicted.

    Attributes:
        way: How it went through the network.
        strain: What is left.
        left_db: The power that is left of the machine's noise, against what it was.
    """

    way: Way
    strain: Series
    left_db: float

    @property
    def delay_s(self) -> float:
        """How long a mean waits for its predictions."""
        return self.way.delay_samples / RATE_HZ


def clean(ways: Sequence[Way], data: Recording, address: str) -> list[Cleaned]:
    """Streams the witnesses through each way, and takes what comes back off the strain."""
    found = []
    for way in ways:
        with StreamClient(address, way.name) as client:
            answers = [np.asarray(answer)[0] for answer in client.stream(data.witnesses)]
        noise = np.concatenate(answers, axis=-1)[0]
        # The first second is of windows that begin with zeros.
        begin, end = RATE_HZ, len(data.strain) - way.delay_samples
        left = data.strain[begin:end] - noise[begin + way.delay_samples : end + way.delay_samples]
        machine = data.strain[begin:end] - data.quiet[begin:end]
        residual = left - data.quiet[begin:end]
        found.append(Cleaned(way, left, 10 * float(np.log10((residual**2).mean() / (machine**2).mean()))))
        print(
            f"means of {way.cover:2d}: {1e3 * found[-1].delay_s:5.0f} ms later, {found[-1].left_db:6.1f} dB left",
            flush=True,
        )
    return found
