"""Finds inspirals in the strain of two detectors, streamed through a server: one command, from noise to picture.

    pip install 'alipes[examples]'
    python examples/gravitational-waves/run.py

What it does, in order: makes strain, exports a network, puts a snapshotter before it so that each sample travels once,
serves both, streams the strain, watches the server meanwhile, and draws what came back.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from alipes import repository as qv
from alipes.client import InferenceClient
from alipes.monitor import ServerMonitor
from alipes.serve import serve
from network import STRIDE, WINDOW, network
from strain import RATE_HZ, Injection, strain

Series: TypeAlias = npt.NDArray[np.float32]

STRIDES_PER_SECOND = RATE_HZ // STRIDE
THRESHOLD = 8.0
SEQUENCE = 1001


@dataclass(frozen=True)
class Event:
    """Something that the network heard: when its stride ended, and how loud it was."""

    time_s: float
    snr: float


def export(folder: Path) -> None:
    """The network, and an ensemble that keeps its window in the server: a request brings one second of new strain."""
    repo = qv.ModelRepository(folder, clean=True)
    search = repo.add("matched-filters", platform=qv.Platform.ONNX)
    search.export_version(network())
    streaming = repo.add("search", platform=qv.Platform.ENSEMBLE)
    streaming.add_streaming_inputs(search.inputs["strain"], stream_size=STRIDE, batch_size=STRIDES_PER_SECOND)
    streaming.add_output(search.outputs["snr"])
    streaming.export_version(None)
    # A stream that is silent for so long is forgotten; a laptop may be busy for a while.
    snapshotter = repo.models["snapshotter"]
    snapshotter.config.sequence_batching.max_sequence_idle_microseconds = 60_000_000
    snapshotter.config.write()


class Collected:
    """Puts answers together to one series; it is handed over with the last of them."""

    def __init__(self, seconds: int) -> None:
        """Takes how long the series is."""
        self.snr = np.zeros(seconds * STRIDES_PER_SECOND, np.float32)

    def __call__(self, y: Series, request_id: int, sequence_id: int) -> Series | None:
        """Takes one answer: the strides of a second."""
        start = request_id * STRIDES_PER_SECOND
        self.snr[start : start + len(y)] = y[:, 0]
        return self.snr if start + len(y) == len(self.snr) else None


def stream(data: Series, models: Path, statistics: Path) -> Series:
    """The network's answer to each stride of the data."""
    seconds = data.shape[1] // RATE_HZ
    with serve(models, wait=True):
        collected = Collected(seconds)
        # As many seconds under way as keep the server busy; more would only wait there.
        client = InferenceClient("localhost:8001", "search", callback=collected, max_in_flight=4)
        monitor = ServerMonitor("search", ips="localhost", filename=str(statistics), name="monitor")
        # Leaving the block waits for all answers.
        with monitor, client:
            for second in range(seconds):
                client.infer(
                    data[:, second * RATE_HZ : (second + 1) * RATE_HZ],
                    request_id=second,
                    sequence_id=SEQUENCE,
                    sequence_start=second == 0,
                    sequence_end=second == seconds - 1,
                )
        snr: Series = client.get()
    # Until the first window is full, there are zeros in it.
    snr[: WINDOW // STRIDE - 1] = 0.0
    return snr


def loud(snr: Series) -> list[Event]:
    """The loudest stride of each second that has one above the threshold."""
    events: list[Event] = []
    for stride in np.flatnonzero(snr > THRESHOLD):
        event = Event((stride + 1) / STRIDES_PER_SECOND, float(snr[stride]))
        if not events or event.time_s - events[-1].time_s > 1.0:
            events.append(event)
        elif event.snr > events[-1].snr:
            events[-1] = event
    return events


def compare(events: list[Event], injections: list[Injection]) -> list[str]:
    """One line for each inspiral that was put in, and one for each event that is none of them."""
    lines, left = [], list(events)
    for one in injections:
        found = next((event for event in left if abs(event.time_s - one.time_s) < 0.5), None)
        heard = "missed" if found is None else f"heard at {found.time_s:7.2f} s with SNR {found.snr:4.1f}"
        lines.append(f"inspiral at {one.time_s:7.2f} s, {one.chirp_mass:4.1f} suns, SNR {one.snr:4.1f}: {heard}")
        left = [event for event in left if event is not found]
    return lines + [
        f"nothing was put in at {event.time_s:7.2f} s, where SNR {event.snr:4.1f} was heard" for event in left
    ]


def main() -> None:
    """Does it all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="how much strain (60)")
    parser.add_argument("--seed", type=int, default=7, help="another number, other noise (7)")
    parser.add_argument("--output", type=Path, default=Path("gravitational-waves"), help="folder for what is written")
    parser.add_argument("--no-picture", action="store_true", help="only the text, which needs no matplotlib")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)

    data, injections = strain(asked.seconds, asked.seed)
    export(asked.output / "models")
    statistics = asked.output / "server-stats.csv"
    snr = stream(data, asked.output / "models", statistics)
    np.savez(asked.output / "snr.npz", strain=data, snr=snr)
    print("\n".join(compare(loud(snr), injections)))
    if not asked.no_picture:
        from picture import draw

        print(draw(data, snr, injections, statistics, asked.output / "search.png"))


if __name__ == "__main__":
    main()
