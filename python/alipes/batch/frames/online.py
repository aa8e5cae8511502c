"""`online`: frames that arrive as files, answered and written one after the other, each once."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from alipes.batch.formats.find import FORMS
from alipes.batch.frames.arrivals import Arrivals
from alipes.batch.frames.folder import FrameFolder, StreamFacts
from alipes.batch.frames.reading import FrameShape
from alipes.batch.frames.sending import FrameSender
from alipes.batch.frames.stream import FrameStream, OnlineSummary, StreamRules
from alipes.batch.servers import RunServers, run_servers
from alipes.client import StreamClient, Tls
from alipes.errors import ConfigError
from alipes.progress import task

__all__ = ["GAPS", "online"]

GAPS: Final = ("reset", "fill")
"""What happens where a frame is missing: the state begins anew, or zeros stand for it."""

_CONNECT_S: Final = 5.0


def online(  # noqa: PLR0913 - each is an option of its own
    model: str,
    frames: str | os.PathLike[str],
    outputs: str | os.PathLike[str],
    *,
    url: str | Sequence[str] | None = None,
    repository: str | os.PathLike[str] | None = None,
    version: int | str | None = None,
    form: str = "npz",
    gaps: str = "reset",
    wait_s: float = 2.0,
    frame_samples: int | None = None,
    batch: int | None = None,
    overlap: int | None = None,
    newest: bool = False,
    most_frames: int | None = None,
    silence_s: float | None = None,
    timeout_s: float = 30.0,
    reconnect_s: float = 60.0,
    headers: Mapping[str, str] | None = None,
    tls_roots: str | os.PathLike[str] | None = None,
    server_options: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> OnlineSummary:
    """Has a streaming model answer frames that arrive as files, and writes the answers of each.

    A frame is a piece of a time series, whose last axis is the time; the number in the name of its file is its place.
    The folder of the answers knows what is done: the same call goes on there, and what it writes is, bit for bit, what
    one call without a break had written.

    Args:
        model: A streaming model, such as an ensemble with a snapshotter.
        frames: The folder in which frames arrive, whole: written under another name, or one with a dot in front, and
            renamed; or a pattern of files in it. `.npy`, `.npz` and `.h5` with one array.
        outputs: The folder for the answers.
        url: The server, or several, of which one is asked and the others stand by.
        repository: In its place: models of a server that is started on this machine.
        version: Version of the model; the server's choice by default.
        form: What answers are written as: `npz`, `npy` or `h5`.
        gaps: Where a frame is missing: `reset` begins the state of the model anew, `fill` puts zeros in its place.
        wait_s: How long a missing frame is waited for once a later one is there, and a broken one to be mended.
        frame_samples: Samples of a frame; those of the first one by default.
        batch: Strides of an update, where the model leaves that open.
        overlap: Updates that the state of the model depends on; found out for snapshotters and averagers.
        newest: At the first start, leave out the frames that are there.
        most_frames: End after so many frames.
        silence_s: End when no frame has come for so long.
        timeout_s: The longest wait for an answer.
        reconnect_s: How long a server is looked for that answers.
        headers: Headers that the server asks for.
        tls_roots: Certificates to trust.
        server_options: Further arguments of `alipes.Server` for a server that is started.
        progress: False shows no line; by default there is one on a terminal or in a notebook.

    Returns:
        What this start came to, once it ends by `most_frames` or `silence_s`.

    Raises:
        ConfigError: If an argument or a folder is wrong.
        BatchError: If the stream cannot go on, such as for want of room: the same call goes on.
        AlipesError: If no server answers.
    """
    if form not in FORMS or form in ("jsonl", "parquet"):
        raise ConfigError(f"answers are written as npz, npy or h5, not as {form}", key="form")
    if gaps not in GAPS:
        raise ConfigError(f"gaps are handled by {' or '.join(GAPS)}, not by {gaps}", key="gaps")
    rules = StreamRules(form, gaps, wait_s, newest, most_frames, silence_s)
    arrivals = Arrivals(frames)
    with (
        closing(FrameFolder(outputs)) as folder,
        task(f"stream {model}", show=progress) as line,
        run_servers(url, None, None if repository is None else os.fspath(repository), dict(server_options or {})) as up,
    ):
        addresses = _addresses(up)

        def connect() -> StreamClient:
            up.look()
            return StreamClient(
                next(addresses),
                model,
                version=version,
                batch_size=batch or 1,
                max_in_flight=None,
                max_unread_bytes=None,
                timeout_s=timeout_s,
                connect_timeout_s=_CONNECT_S,
                reconnect_s=0.0,
                headers=headers,
                tls=None if tls_roots is None else Tls(roots=Path(tls_roots)),
            )

        number = zlib.crc32(os.fsencode(folder.path.absolute()))
        with closing(FrameSender(connect, number, overlap, reconnect_s)) as sender:
            facts = folder.facts()
            named = StreamFacts(model, str(version or ""), form, sender.update.shape[-1], frame_samples or 0)
            shape = FrameShape(sender.update.shape, sender.update.datatype, _samples(facts, named))
            return FrameStream(folder, arrivals, sender, shape, None if facts else named, rules, line).run()


def _addresses(up: RunServers) -> itertools.cycle[str]:
    for address in up.addresses:
        if not address.startswith(("grpc://", "grpcs://")):
            raise ConfigError(
                f"streams need gRPC, and {address} is an address of HTTP: give the port of gRPC", key="url"
            )
    return itertools.cycle(up.addresses)


def _samples(facts: StreamFacts | None, named: StreamFacts) -> int | None:
    """Samples of a frame, where they are known.

    Raises:
        ConfigError: If the folder has another stream.
    """
    if facts is None:
        return named.frame_samples or None
    for name, what in (("model", "model"), ("version", "version"), ("form", "form"), ("update_samples", "update")):
        before, now = getattr(facts, name), getattr(named, name)
        if before != now:
            raise ConfigError(
                f"the stream in the folder has {what} '{before}', and this start '{now}': choose another folder",
                key=name,
            )
    if named.frame_samples and named.frame_samples != facts.frame_samples:
        raise ConfigError(
            f"frames of the stream in the folder have {facts.frame_samples} samples, not {named.frame_samples}: "
            "choose another folder",
            key="frame_samples",
        )
    return facts.frame_samples
