"""Alerts of Prometheus: what somebody should look at, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = ["rules"]

_JOB: Final = "alipes"


@dataclass(frozen=True)
class _Alert:
    """An alert.

    Attributes:
        name: Its name.
        expression: What holds then, in PromQL.
        lasts: How long it has to hold.
        severity: `critical` wakes somebody, `warning` waits for the morning.
        summary: One sentence.
        mend: What to do.
    """

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    mend: str


def _alerts(latency_s: float, pending: int) -> tuple[_Alert, ...]:
    by = "by (job, model)"
    answered = f"sum {by} (rate(nv_inference_request_success[5m]))"
    failed = f'sum {by} (rate(nv_inference_request_failure{{reason!="CANCELED"}}[5m]))'
    slowest = "histogram_quantile(0.99, sum by (job, model, le) (rate(alipes_inference_request_seconds_bucket[5m])))"
    return (
        _Alert(
            "AlipesServerDown",
            f'up{{job=~".*{_JOB}.*"}} == 0',
            "1m",
            "critical",
            "{{ $labels.instance }} does not answer.",
            "Look why it stopped: `alipes deploy status NAME`, or `journalctl --unit alipes`.",
        ),
        _Alert(
            "AlipesRequestsFail",
            f"{failed} / ({answered} + {failed}) > 0.05",
            "5m",
            "critical",
            "{{ $value | humanizePercentage }} of the requests to {{ $labels.model }} fail.",
            "The panel Failures has the reasons; REJECTED means that the queue is full, BACKEND that the model fails.",
        ),
        _Alert(
            "AlipesSlow",
            f"{slowest} > {latency_s:g}",
            "10m",
            "warning",
            "1 of 100 requests to {{ $labels.model }} takes over {{ $value | humanizeDuration }}.",
            "`alipes advise` says what limits the model.",
        ),
        _Alert(
            "AlipesQueueGrows",
            f"sum {by} (nv_inference_pending_request_count) > {pending}",
            "5m",
            "warning",
            "{{ $value }} requests wait for {{ $labels.model }}.",
            "Add instances or servers: `alipes deploy scale`, or `scaling` in the values.",
        ),
        _Alert(
            "AlipesNetworkHeldUp",
            "sum by (job, instance) (increase(alipes_network_long_turns_total[10m])) > 10",
            "10m",
            "warning",
            "Network threads of {{ $labels.instance }} are held up.",
            "The log names the tasks. Mostly the machine has more work than processors.",
        ),
    )


def rules(latency_s: float = 1.0, pending: int = 100) -> dict[str, Any]:
    """The document of rules.

    Args:
        latency_s: Seconds of the 99th percentile above which a model is slow.
        pending: Waiting requests of a model above which its queue is long.
    """
    alerts = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": alert.mend},
        }
        for alert in _alerts(latency_s, pending)
    ]
    return {"groups": [{"name": "alipes", "rules": alerts}]}
