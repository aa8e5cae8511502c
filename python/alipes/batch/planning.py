"""The plan of a run: the one that its folder has, if that is for the same, or a new one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alipes.batch.folder import RunFolder
from alipes.batch.formats.base import Part
from alipes.batch.formats.find import file_format
from alipes.batch.inputs import File, write_rows
from alipes.batch.plan import FORMAT, Overlap, Plan, Unit, cut_pieces
from alipes.batch.rows import ModelRows
from alipes.errors import AlipesError, ConfigError

__all__ = ["Extent", "Files", "Work", "add_plan", "make_plan", "new_plan", "same_plan", "written"]

Files = tuple[str, list[File]]
"""A folder, and files to whose relative names it belongs."""

_LOOKED_AT = 3
"""Files that are read before anything is started: if none of them fits the model, the run would be in vain."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done.

    Attributes:
        model: By which model.
        version: By which version of it; empty is the server's choice.
        form: What results are written as.
        stream: Whether the inputs are time series.
    """

    model: str
    version: str
    form: str
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is done at a time.

    Attributes:
        servers: Servers.
        clients: Clients of each.
        unit_bytes: Bytes above which a file is divided.
    """

    servers: int
    clients: int
    unit_bytes: int


def make_plan(work: Work, files: Files, rows: ModelRows, extent: Extent) -> Plan:
    """The plan for files.

    Raises:
        ConfigError: If the inputs do not fit the model.
    """
    folder, listed = files
    units: list[Unit] = []
    sizes: list[int] = []
    for number, (name, size, _) in enumerate(listed):
        parts: list[Part] = [(0, -1)]
        if size > extent.unit_bytes:
            # What cannot be read is a unit: a client sets it aside, with the reason.
            with suppress(ValueError, OSError, KeyError, EOFError):
                parts = file_format(name).parts(Path(folder, name), extent.unit_bytes, rows.wanted)
        units += [Unit(number, start, stop) for start, stop in parts]
        sizes += [size // len(parts)] * len(parts)
    pieces = cut_pieces(sizes, extent.servers * extent.clients, 2 * extent.unit_bytes)
    plan = new_plan(work, files, units, pieces, extent)
    _check_first_files(plan, rows)
    return plan


def new_plan(
    work: Work, files: Files, units: list[Unit], pieces: list[int], extent: Extent, overlap: Overlap | None = None
) -> Plan:
    """The plan of this version for units that are cut."""
    import alipes

    folder, listed = files
    return Plan(
        FORMAT,
        alipes.__version__,
        work.model,
        work.version,
        work.form,
        folder,
        listed,
        units,
        pieces,
        extent.servers,
        extent.clients,
        overlap,
    )


def written(inputs: Any, folder: RunFolder, rows: ModelRows) -> Files:
    """Arrays, or what a function yields, as files of the run.

    Raises:
        ConfigError: If they do not fit the model.
    """
    files = write_rows(inputs, folder.inputs, rows)
    states = [(str(file.absolute()), file.stat()) for file in files]
    return "", [(name, state.st_size, state.st_mtime_ns) for name, state in states]


def same_plan(folder: RunFolder, work: Work, found: Files | None) -> Plan | None:
    """The plan that a folder has; `None` where it has none.

    Args:
        folder: The folder.
        work: What is to be done.
        found: The files that are there now; `None` where the inputs are no files.

    Raises:
        ConfigError: If the folder has a plan for something else.
    """
    if not folder.has_plan():
        return None
    plan = folder.plan()
    _check_same(folder, plan, work, found)
    return plan


def add_plan(folder: RunFolder, work: Work, found: Files, plan: Plan) -> Plan:
    """Writes a new plan into the folder; gives that of another start which was quicker.

    Raises:
        ConfigError: If the other start is for something else.
    """
    winner = folder.add_plan(plan)
    _check_same(folder, winner, work, found)
    return winner


def _check_same(folder: RunFolder, plan: Plan, work: Work, found: Files | None) -> None:
    """Refuses a folder that has the results of something else."""
    other = _different(plan, work) or ("" if found is None else _changed(plan, found))
    if other:
        raise ConfigError(
            f"{folder.path} holds a run of {other}: choose another folder, or remove this one", key="outputs"
        )


def _different(plan: Plan, work: Work) -> str:
    for what in ("model", "version", "form"):
        there, wanted = getattr(plan, what), getattr(work, what)
        if there != wanted:
            return f"{what} '{there}', and this is one of '{wanted}'"
    if (plan.stream is not None) != work.stream:
        return "rows, and this is one of a stream" if work.stream else "a stream, and this is one of rows"
    return ""


def _changed(plan: Plan, found: Files) -> str:
    before, now = {file[0]: file for file in plan.files}, {file[0]: file for file in found[1]}
    if before.keys() != now.keys():
        new = len(now.keys() - before.keys())
        return f"{len(before)} files, and now there are {len(now)} ({new} of them new)"
    changed = next((name for name, file in now.items() if before[name] != file), "")
    return f"{changed} as it was before it was changed" if changed else ""


def _check_first_files(plan: Plan, rows: ModelRows) -> None:
    """Refuses inputs of which the first ones do not fit the model at all."""
    reasons: list[str] = []
    for file, start, stop in plan.units[:_LOOKED_AT]:
        name = plan.files[file][0]
        try:
            block = next(file_format(name).read(Path(plan.folder, name), (start, stop), rows.wanted), None)
            if block is not None:
                rows.rows(block)
            return
        except AlipesError:
            raise
        except Exception as error:  # whatever a library says of a damaged file
            reasons.append(f"{name}: {error}")
    raise ConfigError(f"the inputs do not fit model '{plan.model}': {reasons[0]}", key="inputs")
