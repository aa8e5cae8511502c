"""Runs over HDF5 and Parquet, and their results in either."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import batch
from support.models import add_model
from support.server import ServerProcess

pytestmark = pytest.mark.extra("batch")

Serve = Callable[..., ServerProcess]


@pytest.mark.slow("starts clients for two runs")
def test_tables_go_in_and_come_out(serve: Serve, repository: Path, tmp_path: Path) -> None:
    import h5py
    import pyarrow.parquet

    add_model(repository, "double", config="max_batch_size: 8\n")
    server = serve(repository)
    rows = np.random.default_rng(1).normal(size=(300, 2)).astype(np.float32)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = rows
    batch.run("double", tmp_path / "rows.h5", tmp_path / "first", url=server.grpc, form="parquet", unit_bytes=500)
    batch.merge(tmp_path / "first", tmp_path / "first.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "first.parquet")
    assert table.column("Y").to_pylist() == (2 * rows).tolist()
    assert table.column("row").to_pylist() == list(range(300))
    assert {Path(file).name for file in table.column("file").to_pylist()} == {"rows.h5"}
    renamed = table.rename_columns(["file", "row", "X"])
    pyarrow.parquet.write_table(renamed, tmp_path / "again.parquet", row_group_size=70)
    batch.run("double", tmp_path / "again.parquet", tmp_path / "second", url=server.grpc, form="h5", unit_bytes=1)
    batch.merge(tmp_path / "second", tmp_path / "second.h5")
    with h5py.File(tmp_path / "second.h5") as file:
        assert np.array_equal(file["Y"][()], 4 * rows)
