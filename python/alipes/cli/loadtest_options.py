"""The options of `alipes loadtest`, by the heading under which its help page has them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from alipes.cli.grouped_help import grouped_option

__all__ = [
    "AsJson",
    "Batch",
    "Body",
    "Callers",
    "CheckAnswers",
    "Compare",
    "ContentType",
    "Count",
    "DataFiles",
    "Duration",
    "ErrorBudget",
    "Even",
    "InFlight",
    "Intervals",
    "Mix",
    "Model",
    "ModelVersion",
    "Percentile",
    "PostPath",
    "Rate",
    "Replay",
    "Rounds",
    "Save",
    "Sequences",
    "Shape",
    "SharedMemory",
    "SharedOutputs",
    "Silence",
    "Stream",
    "Threads",
    "WarmUp",
    "WindowLength",
    "Windows",
    "Within",
    "Zero",
]

_SAVE: Final = ("--save", "--csv", "--parquet", "--html", "--png", "--svg")
"""One option by several names: the file's name says the format."""


def _option(group: str, name: str, text: str, metavar: str | None = None, **more: Any) -> Any:
    """An option under a heading, by one name or several, with spaces; without `shown` its default is not told."""
    return grouped_option(group, *name.split(), text=text, metavar=metavar, **more)


_LOAD: Final = "Load, in a closed loop by default"
_SENT: Final = "What is sent"
_MIXED: Final = "Several models or servers"
_OTHER: Final = "Anything else over HTTP"
_MEASURED: Final = "How it is measured"
_RESULTS: Final = "Results"

Model = Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="Name of the model; none with --path.")]

Callers = Annotated[
    str | None,
    _option(
        _LOAD,
        "--callers -c --concurrency",
        "Closed loop: requests in flight, such as 1,8,64 or 4:16:4; 1 by default.",
        "NUMBERS",
    ),
]
Rate = Annotated[
    str | None,
    _option(
        _LOAD,
        "--rate",
        "Open loop: requests per second, whatever the server does, such as 500,1000 or 100:500:100.",
        "NUMBERS",
    ),
]
Even = Annotated[bool, _option(_LOAD, "--even", "Open loop: evenly spaced, instead of random arrivals.")]
Intervals = Annotated[Path | None, _option(_LOAD, "--intervals", "Open loop: microseconds, one a line.", "FILE")]
InFlight = Annotated[
    int, _option(_LOAD, "--in-flight", "Open loop: most requests under way.", "NUMBER", min=1, shown=True)
]
Threads = Annotated[int, _option(_LOAD, "--threads", "Threads that send.", "NUMBER", min=1, shown=True)]

ModelVersion = Annotated[
    str, _option(_SENT, "--model-version", "Version of the model; the latest by default.", "NUMBER")
]
Batch = Annotated[int, _option(_SENT, "--batch", "Rows in each request.", "ROWS", min=1, shown=True)]
Shape = Annotated[
    list[str] | None, _option(_SENT, "--shape", "Sizes that the model leaves open; any number.", "INPUT:D,D")
]
Zero = Annotated[bool, _option(_SENT, "--zero", "Send zeros instead of random values.")]
DataFiles = Annotated[
    list[str] | None,
    _option(
        _SENT,
        "--data",
        "Arrays by input (np.savez), sent in turn by axis 0; with --mix for each model that is named.",
        "[MODEL=]FILE",
    ),
]
Replay = Annotated[
    list[Path] | None,
    _option(
        _SENT,
        "--replay",
        "Requests that a payload log recorded: .jsonl, .parquet or a folder; of MODEL alone if it is named.",
        "FILE",
    ),
]
Stream = Annotated[
    bool, _option(_SENT, "--stream", "Over streams of gRPC, as decoupled models need; each caller has one.")
]
Sequences = Annotated[
    str | None,
    _option(
        _SENT,
        "--sequences",
        "Sequences of so many requests, for models that keep a state, with NUMBER correlation ids: one for each "
        "caller, and 64 at least.",
        "LENGTH[:NUMBER]",
    ),
]
SharedMemory = Annotated[
    bool, _option(_SENT, "--shared-memory", "Inputs lie in memory that the server, on this machine, maps too.")
]
SharedOutputs = Annotated[
    int,
    _option(_SENT, "--shared-outputs", "With --shared-memory: outputs too, each with so much room.", "BYTES", min=0),
]

Mix = Annotated[
    list[str] | None,
    _option(
        _MIXED,
        "--mix",
        "In place of MODEL, and any number: one of those that are sent, how often beside the others, and where to.",
        "MODEL[:VERSION][=WEIGHT][@ADDRESS]",
    ),
]
Compare = Annotated[
    tuple[str, str] | None,
    _option(
        _MIXED,
        "--compare",
        "Load two in turn, and say by how much they differ: addresses, models, or versions of MODEL.",
        "A B",
    ),
]
Rounds = Annotated[
    int,
    _option(_MIXED, "--rounds", "With --compare: rounds with a window of each.", "NUMBER", min=4, shown=True),
]

PostPath = Annotated[str | None, _option(_OTHER, "--path", "Post --body there, whatever serves it.", "PATH")]
Body = Annotated[
    list[Path] | None, _option(_OTHER, "--body", "What is posted, a file or JSON; any number, in turn.", "FILE")
]
ContentType = Annotated[str, _option(_OTHER, "--content-type", "Content type of --body.", "TYPE", shown=True)]

WindowLength = Annotated[float, _option(_MEASURED, "--window", "Length of a window.", "SECONDS", min=0.01, shown=True)]
Windows = Annotated[int, _option(_MEASURED, "--windows", "Most windows of a level.", "NUMBER", min=1, shown=True)]
WarmUp = Annotated[
    float, _option(_MEASURED, "--warm-up", "What is sent first, and counts for nothing.", "SECONDS", min=0, shown=True)
]
Within = Annotated[
    float,
    _option(_MEASURED, "--within", "How far windows may differ that agree.", "PERCENT", min=0.1, shown=True),
]
Percentile = Annotated[
    float | None,
    _option(
        _MEASURED,
        "--percentile",
        "The latency that has to agree; the mean by default.",
        "PERCENT",
        min=1,
        max=100,
    ),
]
Duration = Annotated[
    float | None,
    _option(
        _MEASURED,
        "--duration",
        "Measure each level for so long, whether or not windows agree sooner.",
        "SECONDS",
        min=0.01,
    ),
]
Count = Annotated[
    int | None, _option(_MEASURED, "--count -n", "Send so many requests, in one window.", "NUMBER", min=1)
]
Silence = Annotated[
    float,
    _option(
        _MEASURED,
        "--silence",
        "With --count: time without an answer that ends the level.",
        "SECONDS",
        min=0.01,
        shown=True,
    ),
]
ErrorBudget = Annotated[
    float,
    _option(_MEASURED, "--error-budget", "Share of failures that ends a level.", "PERCENT", min=0, max=100, shown=True),
]
CheckAnswers = Annotated[
    str | None,
    _option(
        _MEASURED,
        "--check",
        "Check samples of the answers: equal requests get equal answers, or arrays by output (np.savez).",
        "first|FILE",
    ),
]

Save = Annotated[
    list[Path] | None,
    typer.Option(
        *_SAVE,
        metavar="FILE",
        show_default=False,
        help="Write the results there, in the format that the name ends in; any number.",
        rich_help_panel=_RESULTS,
    ),
]
AsJson = Annotated[bool, _option(_RESULTS, "--json", "Print the figures as JSON.")]
