"""How the tour looks: at most 80 columns, in colour on a terminal and as plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from alipes.quickstart import drawing, next_steps
from alipes.quickstart.batches import grouped
from alipes.quickstart.child import Addresses

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from alipes.quickstart.batches import BatchStatistic
    from alipes.quickstart.digits import Digits
    from alipes.quickstart.load import LoadResult
    from alipes.quickstart.protocols import ProtocolResult

_WIDTH: Final = 80
_BAR: Final = 14
_BUSY: Final = 0.9


class Screen:
    """Prints each part of the tour."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Prints to `stream`, or to standard output."""
        stream = stream if stream is not None else sys.stdout
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="replace"
            )  # a terminal without these characters shows "?" rather than a traceback
        self._console = Console(file=stream, highlight=False)
        self._console.width = min(self._console.width, _WIDTH)
        self._shades = drawing.BLOCKS if self._console.encoding.startswith("utf") else drawing.ASCII

    def title(self, scans: int) -> None:
        """What is going to happen."""
        self._console.print(
            Panel(f"A digit classifier, {scans} scans it has never seen, a real server", title="alipes quickstart")
        )

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """A spinner while something is waited for."""
        with self._console.status(f"{what} ..."):
            yield

    def ready(self, addresses: Addresses, seconds: float) -> None:
        """The server answers."""
        self._console.print(f"[green]ready[/] after {seconds:.2f} s   ", end="")
        self._console.print(f"HTTP {addresses.http}   gRPC {addresses.grpc}", style="cyan")

    def drawings(self, digits: Digits, probabilities: npt.NDArray[np.float32]) -> None:
        """A few scans, what the model says, and the truth; the last is one that it got wrong, if there is any."""
        self._heading("What the model saw, and what it said")
        shown = pick(probabilities.argmax(axis=1) == digits.labels, digits.labels, drawing.fitting(self._console.width))
        for line in drawing.side_by_side([drawing.draw(digits.scans[index], self._shades) for index in shown]):
            self._console.print(Text(line), no_wrap=True)
        self._console.print()
        answers, truths = Text(), Text()
        for index in shown:
            predicted, truth = int(probabilities[index].argmax()), int(digits.labels[index])
            style = "green" if predicted == truth else "red"
            answers.append(f"{f'says {predicted} ({probabilities[index].max():.0%})':<19}", style)
            truths.append(f"{f'truth {truth}':<19}")
        answers.rstrip()
        truths.rstrip()
        self._console.print(answers)
        self._console.print(truths)

    def protocols(self, results: Sequence[ProtocolResult]) -> None:
        """Accuracy through each protocol, and how long one request took."""
        self._heading("Every held-out scan, one request each, over every protocol")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("protocol")
        for heading in ("scans", "right", "accuracy", "one request (median)"):
            table.add_column(heading, justify="right")
        for result in results:
            scans = len(result.probabilities)
            accuracy = f"{100 * result.accuracy:.1f} %"
            table.add_row(result.protocol, str(scans), str(result.right), accuracy, f"{result.median_ms:.2f} ms")
        self._console.print(table)

    @contextmanager
    def progress(self, seconds: float) -> Iterator[Callable[[float], None]]:
        """A bar that fills in so many seconds, on a terminal only; yields what moves it."""
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal) as bar:
            task = bar.add_task("sending scans", total=seconds)
            yield lambda elapsed_s: bar.update(task, completed=elapsed_s)

    def load(self, result: LoadResult) -> None:
        """Throughput and latency, and what limited them."""
        self._heading(
            f"{result.window.seconds:.1f} seconds of load: JSON, one scan a request, {result.connections} connections"
        )
        self._console.print(
            f"[bold]{result.window.rate:,.0f} requests/s[/]   p50 {result.percentile_ms(50):.2f} ms"
            f"   p99 {result.percentile_ms(99):.2f} ms   {result.window.failed} failed"
        )
        busy = f"One thread sent them and used {min(result.client_busy, 1):.0%} of a core"
        verdict = (
            "; it may be the limit,\nnot the server: see `alipes loadtest --threads`."
            if result.client_busy >= _BUSY
            else "."
        )
        self._console.print(f"{busy}{verdict}", style="dim")

    def batches(self, batches: Sequence[BatchStatistic]) -> None:
        """How the server grouped those requests."""
        self._heading("What the server batched meanwhile")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for heading in ("batch size", "batches", "scans", "ms per batch", "µs per scan"):
            table.add_column(heading, justify="right")
        table.add_column("share of scans", no_wrap=True)
        groups = grouped(batches)
        scans = sum(group.rows for group in groups)
        for group in groups:
            per_batch_ms, per_scan_us = group.compute_ns / group.count / 1e6, group.compute_ns / group.rows / 1e3
            bar = self._shades[-1] * round(_BAR * group.rows / scans)
            table.add_row(
                group.label, f"{group.count:,}", f"{group.rows:,}", f"{per_batch_ms:.3f}", f"{per_scan_us:.1f}", bar
            )
        self._console.print(table)

    def next_steps(self, running: Addresses | None) -> None:
        """What to type next."""
        self._heading("What to type next")
        for reason, command in next_steps.commands(running):
            self._remark(reason)
            self._command(command)
        self._remark("the same from Python")
        self._command(next_steps.program(running))
        self._remark("every command and option")
        self._command(f"{next_steps.tool()} --help")

    def running(self, pid: int) -> None:
        """The server stays until the user has seen enough."""
        self._console.print(f"\n[green]The server keeps running[/] (process {pid}). Ctrl-C stops it.")

    def stopped(self, status: int) -> None:
        """The server is gone."""
        style = "green" if status == 0 else "red"
        self._console.print(f"\n[{style}]server stopped[/], exit status {status}")

    def failed(self, error: Exception, log_tail: str) -> None:
        """Shows the error, the end of the server's output, and the next step."""
        self._console.print(Text(f"quickstart failed: {error}", style="bold red"))
        if log_tail:
            self._console.print("the last lines of the server's log:", style="dim")
            self._console.print(Text(log_tail), soft_wrap=True)
        self._console.print("To look into it, serve the same model by hand:")
        self._command(next_steps.by_hand())

    def _heading(self, text: str) -> None:
        self._console.print()
        self._console.print(Text(text, style="bold"))

    def _remark(self, text: str) -> None:
        self._console.print(Text(f"# {text}", style="dim"))

    def _command(self, command: str) -> None:
        """As it is to be typed: never folded, so that it can be copied."""
        for line in command.splitlines():
            self._console.print(Text(f"  {line}", style="cyan"), soft_wrap=True)


def pick(right: npt.NDArray[np.bool_], labels: npt.NDArray[np.uint8], wanted: int) -> list[int]:
    """Indexes of scans to show: right ones of different digits, and one wrong one at the end, if there is any."""
    import numpy as np

    wrong = [int(index) for index in np.flatnonzero(~right)][:1] if wanted > 1 else []
    shown: list[int] = []
    for index in np.flatnonzero(right):
        if len(shown) + len(wrong) == wanted:
            break
        if labels[index] not in labels[shown + wrong]:
            shown.append(int(index))
    return shown + wrong
