"""The table on a terminal."""

from rich.console import Console
from rich.table import Table

from bench.report.lines import lines
from bench.report.run import Run

VERDICTS = {True: "[green]reached", False: "[red]missed", None: ""}


def show(run: Run, console: Console) -> None:
    """Prints the comparisons, then what was left out."""
    table = Table(title="Ratios within one run: median (least to greatest of the rounds)", title_justify="left")
    for heading in ("work", "alipes", "compared with", "found", "CPU", "to reach", ""):
        table.add_column(heading)
    for result in run.results:
        for index, line in enumerate(lines(result)):
            work = line.work if index == 0 else ""
            found = (line.found, line.processor_time, line.to_reach)
            table.add_row(work, line.of, line.against, *found, VERDICTS[line.reached])
        table.add_section()
    console.print(table)
    for name, reason in run.skipped.items():
        console.print(f"[yellow]left out: {name}[/]: {reason}", highlight=False)
