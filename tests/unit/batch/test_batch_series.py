"""Time series are read sample by sample, and their stretches are all of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.batch.formats.series import open_series
from alipes.batch.stream_planning import stretches
from hypothesis import given, settings
from hypothesis import strategies as st

SERIES = np.arange(300, dtype=np.float32).reshape(3, 100)


@pytest.mark.parametrize("shape", [(100,), (3, 100), (1, 3, 100)])
@pytest.mark.parametrize("end", ["npy", "npz", "packed.npz", "fortran.npy"])
def test_samples_of_a_series_are_those_of_the_array(tmp_path: Path, shape: tuple[int, ...], end: str) -> None:
    array = SERIES[0] if len(shape) == 1 else SERIES.reshape(shape)
    path = tmp_path / f"series.{end}"
    save: Any = {"npy": np.save, "npz": np.savez, "packed.npz": np.savez_compressed, "fortran.npy": np.save}[end]
    save(path, np.asfortranarray(array) if end.startswith("fortran") else array)
    with open_series(path) as series:
        assert (series.shape, series.samples, series.channels) == (array.shape, 100, array.size // 100)
        assert np.array_equal(series.read(0, 100), array)
        assert np.array_equal(series.read(17, 31), array[..., 17:31])
        assert np.array_equal(series.read(90, 400), array[..., 90:])


def test_what_is_no_series_says_why(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=SERIES, b=SERIES)
    np.save(tmp_path / "number.npy", np.float32(3))
    (tmp_path / "lines.jsonl").touch()
    for name, reason in (("two.npz", "has 2 arrays"), ("number.npy", "is a number"), ("lines.jsonl", "npy, npz or h5")):
        with pytest.raises(ValueError, match=reason), open_series(tmp_path / name):
            pass


@settings(max_examples=200, deadline=None)
@given(
    counts=st.lists(st.integers(0, 5000), min_size=1, max_size=5),
    overlap=st.integers(0, 50),
    shards=st.integers(1, 20),
    most=st.integers(1, 3000),
)
def test_stretches_are_all_of_a_series_in_order(counts: list[int], overlap: int, shards: int, most: int) -> None:
    for count in counts:
        found = stretches(count, overlap, sum(counts), shards, most)
        assert found[0][0] == 0
        assert found[-1][1] == count
        assert all(first[1] == second[0] for first, second in pairwise(found))
        lengths = [stop - start for start, stop in found]
        assert max(lengths) <= most
        assert max(lengths) - min(lengths) <= 1


def test_stretches_are_long_beside_their_overlaps() -> None:
    assert len(stretches(10_000, 0, 10_000, 4, 10_000)) == 32
    assert all(stop - start >= 3 * 200 for start, stop in stretches(10_000, 200, 10_000, 4, 10_000))
    # Every client has one, however short they get.
    assert len(stretches(100, 200, 100, 4, 10_000)) == 4
