"""`alipes deploy dashboards`: what watches a fleet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from alipes.cli.deploy.options import write
from alipes.cli.failures import CommandFailed, perform

__all__ = ["HELP", "dashboards"]

HELP: Final = """Write a dashboard for Grafana, and alerts for Prometheus.

\b
  alipes deploy dashboards --output dashboards

The folder has grafana.json, to import in Grafana, and rules.yaml, to name under rule_files in Prometheus.
"""


def dashboards(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write them.")] = Path(
        "dashboards"
    ),
    latency: Annotated[
        float, typer.Option("--slow-above", metavar="SECONDS", min=0.0, help="99th percentile that alerts.")
    ] = 1.0,
    pending: Annotated[
        int, typer.Option("--waiting-above", metavar="REQUESTS", min=0, help="Waiting requests that alert.")
    ] = 100,
) -> int:
    """Write them; `HELP` says how."""

    def action() -> int:
        from alipes.deploy.dashboards.grafana import dashboard
        from alipes.deploy.dashboards.rules import rules
        from alipes.deploy.yaml_text import yaml_of

        alerts = yaml_of([rules(latency, pending)])
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandFailed(f"choose another --output: {output} cannot be made", str(error)) from error
        write(json.dumps(dashboard(), indent=2) + "\n", output / "grafana.json")
        write(alerts, output / "rules.yaml")
        print(
            f"{output}/grafana.json: import it in Grafana\n{output}/rules.yaml: name it under rule_files in Prometheus"
        )
        return 0

    return perform(action)
