"""Looks at a running server twice, and says which stage limits each of its models."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from alipes.advise.attempt import Attempt, attempt
from alipes.advise.findings import Finding, Surroundings, find
from alipes.advise.processors import ProcessorReading, use_between
from alipes.advise.reading import Flow, Reading, flows, round_trip_ms
from alipes.client import Client, Tls
from alipes.client.endpoint import Endpoint
from alipes.errors import ConfigError
from alipes.tables import frame

__all__ = ["Advice", "advise"]


@dataclass(frozen=True)
class Advice:
    """What limits the models of a server.

    Attributes:
        address: The server.
        seconds: How long it was looked at.
        findings: One for each model that was asked meanwhile, that with most time first.
        flows: What happened to these models, in the same order.
        attempt: What the first change did, where it was tried.
    """

    address: str
    seconds: float
    findings: Sequence[Finding]
    flows: Sequence[Flow]
    attempt: Attempt | None = None

    def __str__(self) -> str:
        """What `alipes advise` prints: of each model what limits it, what was seen, what to do and what that brings."""
        if not self.findings:
            return f"no model was asked in {self.seconds:g} s: look while there is traffic"
        tried = [f"tried: {self.attempt}"] if self.attempt is not None else []
        return "\n".join([line for finding in self.findings for line in finding.lines()] + tried)

    def to_pandas(self) -> Any:
        """One row for each model, as a `pandas.DataFrame`.

        Raises:
            Unsupported: If pandas is not installed.
        """
        return frame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """One row for each model, for JSON."""
        return [
            {
                "model": flow.model,
                "stage": finding.stage,
                "evidence": finding.evidence,
                "advice": finding.advice,
                "gain": finding.gain,
                "change": str(finding.change or ""),
                "rate": flow.rate,
                "mean_ms": flow.mean_ms,
                **{f"{stage}_ms": value for stage, value in flow.stages_ms.items()},
                "mean_batch": flow.mean_batch,
                "busy": flow.busy,
                "failures": flow.failures,
            }
            for finding, flow in zip(self.findings, self.flows, strict=True)
        ]


def advise(  # noqa: PLR0913  # where, what and how long, by name
    address: str = "http://localhost:8000",
    model: str = "",
    *,
    seconds: float = 5.0,
    metrics_url: str | None = None,
    try_change: bool = False,
    keep: bool = False,
    headers: Mapping[str, str] | None = None,
    tls: Tls | None = None,
) -> Advice:
    """Looks at a server twice, some seconds apart, while its clients send requests, and says what limits its models.

    Args:
        address: The server: `http://`, `https://`, `grpc://`, `grpcs://` or `host:port`, which is gRPC.
        model: One model; all that get requests meanwhile by default.
        seconds: Between the two looks; above 0, and 3600 at most.
        metrics_url: Where its metrics are; by default on the port that they usually have beside the address.
        try_change: Tries the first change that is a matter of the configuration, under the traffic that there is, for
            as long again. The server goes back to its configuration at the end, and by itself within seconds if this
            process ends before.
        keep: Leaves the change in force where it made nothing slower.
        headers: Of each request.
        tls: How connections are encrypted.

    Returns:
        A finding for each model that got requests, that with most time first; none where nobody sent any.

    Raises:
        ConfigError: If the address or the time cannot be meant.
        AlipesError: If the server is not there, or does not know the model; if it does not load by name, and a change
            is to be tried.

    Units: rates in inferences (rows) per second, times in milliseconds, `busy` as a share of all instances' time.

    Examples:
        >>> how = Measuring(window_s=2.0, windows=1)
        >>> with ThreadPoolExecutor() as pool:
        ...     traffic = pool.submit(run, "double", Closed(4), address="http://localhost:8000", measuring=how)
        ...     advice = advise("http://localhost:8000", seconds=1.0)
        >>> [(finding.model, bool(finding.advice)) for finding in advice.findings]
        [('double', True)]
        >>> advice.flows[0].rate > 0
        True
    """
    if not 0 < seconds <= 3600:
        raise ConfigError(f"seconds is {seconds}: expected above 0, and an hour at most", key="seconds")
    metrics = metrics_url or _metrics_url(address, tls)
    with Client(address, headers=dict(headers or {}), tls=tls) as client:
        before, used_before = Reading.now(client, model), ProcessorReading.now(metrics, headers)
        around = round_trip_ms(client)
        time.sleep(seconds)
        seen = flows(before, Reading.now(client, model), client)
        use = use_between(used_before, ProcessorReading.now(metrics, headers))
        findings = [find(flow, Surroundings(around, use)) for flow in seen]
        tried = None
        chosen = next((pair for pair in zip(findings, seen, strict=True) if pair[0].change is not None), None)
        if try_change and chosen is not None and chosen[0].change is not None:
            tried = attempt(client, chosen[0].model, chosen[0].change, chosen[1], seconds, keep=keep)
    return Advice(address, seconds, findings, seen, tried)


def _metrics_url(address: str, tls: Tls | None) -> str:
    """HTTP, gRPC and metrics usually have three ports in a row."""
    endpoint = Endpoint.parse(address, tls)
    place = urlsplit(f"//{endpoint.address}")
    step = 2 if endpoint.wire == "http" else 1
    return f"http://{place.hostname}:{(place.port or 0) + step}/metrics"
