"""All results in one file, in the order of the inputs."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import numpy as np

from alipes.batch.finish import Manifest, row_places
from alipes.batch.folder import RunFolder
from alipes.batch.formats.base import WHOLE, Array, Wanted
from alipes.batch.formats.find import FORMS, file_format
from alipes.batch.formats.hdf5 import hdf5_library
from alipes.batch.formats.numpy_files import as_plain
from alipes.batch.formats.picture_archive import add_pictures
from alipes.errors import BatchError, ConfigError
from alipes.tables import library

__all__ = ["merge", "places", "results"]

_MERGED: Final = ("npz", "npy", "h5", "parquet", "jsonl", "zip")


def results(folder: str | os.PathLike[str]) -> Iterator[dict[str, Array]]:
    """The results of a run that is whole, some rows at a time, in the order of the inputs.

    Raises:
        BatchError: If the run is not whole, or a file was changed.
    """
    place = RunFolder(folder)
    manifest = _manifest(place)
    wanted = Wanted(dict.fromkeys(manifest.outputs, 0), frozenset(manifest.outputs))
    for piece in manifest.pieces:
        path = place.path / piece.file
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise BatchError(f"{path} cannot be read: {error.strerror}") from error
        if digest != piece.sha256:
            raise BatchError(f"{path} was changed since it was written: remove it and its .json, and start again")
        blocks = [dict(block.arrays) for block in FORMS[manifest.form].read(path, WHOLE, wanted)]
        yield {name: _joined([block[name] for block in blocks]) for name in manifest.outputs}


def places(folder: str | os.PathLike[str]) -> Iterator[tuple[str, int]]:
    """The file and the row within it that each row of the results is for."""
    place = RunFolder(folder)
    _manifest(place)
    plan = place.plan()
    reports = [place.piece(piece) for piece in range(plan.piece_count)]
    first = row_places(plan, reports)
    for report in reports:
        for unit in report.units:
            name, missing = plan.files[plan.units[unit.unit].file][0], set(unit.missing)
            yield from ((name, first[unit.unit] + row) for row in range(unit.rows) if row not in missing)


def merge(folder: str | os.PathLike[str], path: str | os.PathLike[str], *, replace: bool = False) -> int:
    """Writes all results of a run that is whole into one file; a few megabytes of them are in memory at a time.

    Args:
        folder: The folder of the run.
        path: The file; the end of its name says the form. Tables get the columns `file` and `row` too.
        replace: Whether a file that is there is replaced.

    Returns:
        The rows.

    Raises:
        BatchError: If the run is not whole, or there is no room.
        ConfigError: If the file is there, or its form is none.
    """
    target = Path(path)
    kind = file_format(target).suffixes[0][1:]
    if kind not in _MERGED:
        raise ConfigError(f"{target}: results are merged into {', '.join(_MERGED)}", key="path")
    if target.exists() and not replace:
        raise ConfigError(f"{target} is there already: name another file, or have it replaced", key="path")
    place = RunFolder(folder)
    manifest = _manifest(place)
    if kind == "npy" and len(manifest.outputs) > 1:
        raise ConfigError(f"{target}: npy holds one output, and there are {', '.join(manifest.outputs)}", key="path")
    place.write_aside(target, lambda aside: _WRITERS[kind](place, manifest, aside))
    return manifest.rows


def _manifest(place: RunFolder) -> Manifest:
    if not place.success.exists():
        place.plan()  # says where there is no run at all
        raise BatchError(f"{place.path} is not whole yet: start the run again, and merge when it is done")
    return msgspec.json.decode(place.manifest.read_bytes(), type=Manifest)


def _joined(arrays: list[Array]) -> Array:
    try:
        return np.concatenate(arrays)
    except ValueError:  # rows of lines that differ in shape
        rows = [row for array in arrays for row in array]
        column = np.empty(len(rows), object)
        column[:] = rows
        return column


def _shapes(place: RunFolder, manifest: Manifest) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """By output: the type of the merged array, and the shape of a row."""
    found: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
    for columns in results(place.path):
        texts = False
        for name, held in columns.items():
            array = as_plain(held)
            texts = texts or array.dtype.kind in "SU"
            kind = np.promote_types(found[name][0], array.dtype) if name in found else array.dtype
            found[name] = kind, array.shape[1:]
        if not texts:  # all pieces have the same type then
            break
    return found


def _write_npy(place: RunFolder, manifest: Manifest, path: Path) -> None:
    with path.open("wb") as file:
        for name, (kind, shape) in _shapes(place, manifest).items():
            _write_array(file, place, name, kind, (manifest.rows, *shape))


def _write_npz(place: RunFolder, manifest: Manifest, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, (kind, shape) in _shapes(place, manifest).items():
            info = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(info, "w", force_zip64=True) as file:
                _write_array(file, place, name, kind, (manifest.rows, *shape))


def _write_array(file: IO[bytes], place: RunFolder, name: str, kind: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(file, header)
    for columns in results(place.path):
        array = as_plain(columns[name])
        if array.shape[1:] != shape[1:]:
            raise BatchError(f"rows of output '{name}' differ in shape: merge them into lines of JSON")
        file.write(np.ascontiguousarray(array, kind).tobytes())


def _write_h5(place: RunFolder, manifest: Manifest, path: Path) -> None:
    h5py = hdf5_library()
    at = 0
    with h5py.File(path, "w", track_order=True) as file:
        for columns in results(place.path):
            for name, array in columns.items():
                kind = h5py.string_dtype() if array.dtype.kind in "OSU" else array.dtype
                if not at:
                    file.create_dataset(name, (manifest.rows, *array.shape[1:]), kind)
                file[name][at : at + len(array)] = array.astype(object) if array.dtype.kind in "SU" else array
            at += len(next(iter(columns.values())))


def _write_parquet(place: RunFolder, manifest: Manifest, path: Path) -> None:
    from alipes.batch.formats.parquet import table_of

    parquet = library("pyarrow.parquet")
    writer: Any = None
    try:
        for columns in _with_places(place, manifest):
            table = table_of(columns)
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        parquet.write_table(table_of({"file": np.array([], np.str_), "row": np.array([], np.int64)}), path)


def _write_jsonl(place: RunFolder, manifest: Manifest, path: Path) -> None:
    from alipes.batch.formats.json_lines import json_value

    with path.open("w", encoding="utf-8") as file:
        for columns in _with_places(place, manifest):
            for row in zip(*columns.values(), strict=True):
                values = {name: json_value(value) for name, value in zip(columns, row, strict=True)}
                file.write(json.dumps(values) + "\n")


def _write_zip(place: RunFolder, manifest: Manifest, path: Path) -> None:
    at = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for columns in results(place.path):
            add_pictures(archive, columns, at)
            at += len(next(iter(columns.values())))


def _with_places(place: RunFolder, manifest: Manifest) -> Iterator[Mapping[str, Array]]:
    """Results with the columns `file` and `row`, unless outputs have these names."""
    where = places(place.path)
    for columns in results(place.path):
        count = len(next(iter(columns.values())))
        rows = [next(where) for _ in range(count)]
        yield {
            "file": np.array([file for file, _ in rows], np.object_),
            "row": np.array([row for _, row in rows], np.int64),
        } | columns


_WRITERS: Final = {
    "npy": _write_npy,
    "npz": _write_npz,
    "h5": _write_h5,
    "parquet": _write_parquet,
    "jsonl": _write_jsonl,
    "zip": _write_zip,
}
