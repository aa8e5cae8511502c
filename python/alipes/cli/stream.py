"""`alipes stream`: frames in as they arrive, answers out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from alipes.cli.amounts import count
from alipes.cli.connection import Header, TlsRoots, addresses_of, read_headers
from alipes.cli.failures import UsageFailed, perform
from alipes.cli.grouped_help import grouped_option as _option
from alipes.leaving import leaving_on_signals

if TYPE_CHECKING:
    from alipes.batch import OnlineSummary

__all__ = ["HELP", "stream"]

HELP: Final = """Have a streaming model answer frames that arrive as files.

\b
  alipes stream MODEL /data/frames -o answers --url gpu-1:8001
  alipes stream MODEL '/data/H1-*.npy' -o answers --repository models \\
    --gaps fill

FRAMES is the folder in which they arrive, or a pattern of files in it: npy, npz or h5, renamed into place when they are
whole. The number in a name is the place of the frame. The folder of the answers knows what is done: the same command
goes on there, with the same bits as without a break. Ctrl-C ends it, or --frames, or --silence.
"""

_SERVER: Final = "Server"
_FRAMES: Final = "Frames"
_ANSWERS: Final = "Answers"


def stream(  # noqa: PLR0913, PLR0917  # one parameter is one option
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="Name of the streaming model.")],
    frames: Annotated[
        str, typer.Argument(metavar="FRAMES", show_default=False, help="The folder in which frames arrive.")
    ],
    output: Annotated[
        Path,
        _option(_ANSWERS, "-o", "--output", text="Where the answers go, and a stream to go on with.", metavar="FOLDER"),
    ],
    url: Annotated[
        list[str] | None,
        _option(
            _SERVER,
            "--url",
            text="The server's address of gRPC; further ones stand by.",
            metavar="ADDRESS",
        ),
    ] = None,
    repository: Annotated[
        str | None,
        _option(_SERVER, "--repository", text="Models of a server that is started here.", metavar="FOLDER"),
    ] = None,
    model_version: Annotated[
        str, _option(_SERVER, "--model-version", text="Version of the model; the latest by default.", metavar="NUMBER")
    ] = "",
    header: Header = None,
    tls_roots: TlsRoots = None,
    timeout: Annotated[
        float,
        _option(_SERVER, "--timeout", text="Longest wait for an answer.", metavar="SECONDS", min=0.001, shown=True),
    ] = 30.0,
    reconnect: Annotated[
        float,
        _option(
            _SERVER,
            "--reconnect",
            text="How long a server is looked for that answers.",
            metavar="SECONDS",
            min=0,
            shown=True,
        ),
    ] = 60.0,
    gaps: Annotated[
        str,
        _option(
            _FRAMES,
            "--gaps",
            text="Where a frame is missing: reset begins the model's state anew, fill puts zeros in its place.",
            metavar="HOW",
            shown=True,
        ),
    ] = "reset",
    wait: Annotated[
        float,
        _option(
            _FRAMES,
            "--wait",
            text="How long a missing frame is waited for once a later one is there.",
            metavar="SECONDS",
            min=0,
            shown=True,
        ),
    ] = 2.0,
    frame_samples: Annotated[
        int | None,
        _option(
            _FRAMES,
            "--frame-samples",
            text="Samples of a frame; those of the first one by default.",
            metavar="NUMBER",
            min=1,
        ),
    ] = None,
    newest: Annotated[
        bool, _option(_FRAMES, "--newest", text="At the first start, leave out the frames that are there.")
    ] = False,
    most: Annotated[
        int | None, _option(_FRAMES, "--frames", text="End after so many frames.", metavar="NUMBER", min=1)
    ] = None,
    silence: Annotated[
        float | None,
        _option(_FRAMES, "--silence", text="End when no frame has come for so long.", metavar="SECONDS", min=0.001),
    ] = None,
    batch: Annotated[
        int | None,
        _option(
            _FRAMES,
            "--batch",
            text="Strides of an update, where the model leaves that open.",
            metavar="STRIDES",
            min=1,
        ),
    ] = None,
    overlap: Annotated[
        int | None,
        _option(
            _FRAMES,
            "--overlap",
            text="Updates that the model's state depends on, where that is unknown.",
            metavar="UPDATES",
            min=0,
        ),
    ] = None,
    form: Annotated[str, _option(_ANSWERS, "--form", text="npz, npy or h5.", metavar="FORM", shown=True)] = "npz",
    as_json: Annotated[bool, _option(_ANSWERS, "--json", text="Print the figures as JSON.")] = False,
) -> int:
    """Has a streaming model answer frames that arrive as files; `HELP` says how."""

    def action() -> int:
        from alipes import batch as batches

        if (url is None) == (repository is None):
            raise UsageFailed("name the server with --url, or its models with --repository: one of the two")
        summary = batches.online(
            model,
            frames,
            output,
            url=None if url is None else addresses_of(url, encrypted=tls_roots is not None),
            repository=repository,
            version=model_version or None,
            form=form,
            gaps=gaps,
            wait_s=wait,
            frame_samples=frame_samples,
            batch=batch,
            overlap=overlap,
            newest=newest,
            most_frames=most,
            silence_s=silence,
            timeout_s=timeout,
            reconnect_s=reconnect,
            headers=read_headers(header, ""),
            tls_roots=tls_roots,
        )
        print(json.dumps(asdict(summary), indent=2) if as_json else _text(summary))
        return 0

    with leaving_on_signals():
        return perform(action)


def _text(summary: OnlineSummary) -> str:
    lines = [f"the answers to {count(summary.frames, 'frame')} are in {summary.folder}"]
    if summary.median_s is not None and summary.p99_s is not None and summary.most_s is not None:
        lines.append(
            f"from arrival to answers {1e3 * summary.median_s:.3g} ms in the median, {1e3 * summary.p99_s:.3g} ms for "
            f"99 %, {1e3 * summary.most_s:.3g} ms at most"
        )
    others = [
        f"{number} {what}"
        for number, what in (
            (summary.missing, "missing"),
            (summary.filled, "filled with zeros"),
            (summary.late, "late"),
        )
        if number
    ]
    if others:
        lines.append(f"{', '.join(others)}: see {summary.folder}/manifest.jsonl")
    return "\n".join(lines)
