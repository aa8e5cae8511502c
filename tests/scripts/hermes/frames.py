"""Reads frames as they appear, filters what is in them, and writes them, each in a process of its own.

This is how data are moved on the clusters of the detectors, with the processes of hermes and with files of numpy in the
place of theirs.
"""

import sys
import time
from pathlib import Path

import numpy as np
from hermes.stillwater import PipelineProcess

TAPS = np.hanning(9) / np.hanning(9).sum()


class FrameReader(PipelineProcess):
    """Gives the frames of a folder in the order of their times, in chunks, and stops behind the last one."""

    def __init__(self, folder: Path, last: int, chunk: int, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.folder, self.last, self.chunk = folder, last, chunk
        self.t0 = 0
        self.chunks = iter(())

    def read(self, t0: int):
        path = self.folder / f"H-H1_strain-{t0}.npy"
        while not path.exists():
            if self.stopped:
                return
            time.sleep(1e-3)
        strain = np.load(path)
        self.logger.debug(f"Read {path}")
        for start in range(0, len(strain), self.chunk):
            yield {"strain": strain[start : start + self.chunk], "t0": t0, "final": start + self.chunk >= len(strain)}

    def get_package(self):
        try:
            return next(self.chunks)
        except StopIteration:
            if self.t0 > self.last:
                raise
            self.chunks = self.read(self.t0)
            self.t0 += 1
            return None


class Filter(PipelineProcess):
    """Smooths a stream whose chunks come one after the other."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.state = np.zeros(len(TAPS) - 1)

    def process(self, package):
        x = np.concatenate([self.state, package["strain"]])
        self.state = x[-len(self.state) :]
        self.out_q.put((np.convolve(x, TAPS, mode="valid"), package["t0"], package["final"]))


class FrameWriter(PipelineProcess):
    """Puts chunks together and writes a frame for each that came; says which."""

    def __init__(self, folder: Path, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.folder = folder
        self.parts = []

    def process(self, strain, t0, final):
        self.parts.append(strain)
        if final:
            path = self.folder / f"H-H1_clean-{t0}.npy"
            np.save(path, np.concatenate(self.parts))
            self.parts = []
            self.out_q.put(path.name)

    def cleanup(self, exc):
        if not isinstance(exc, StopIteration):
            (self.folder / "failed").write_text(f"{type(exc).__name__}: {exc}")
        super().cleanup(exc)


def main(source: str, target: str, frames: int):
    reader = FrameReader(Path(source), frames - 1, 100, name="reader", rate=1000)
    writer = FrameWriter(Path(target), name="writer")
    with reader >> Filter(name="filter") >> writer as pipeline:
        for name in pipeline:
            print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
