"""A dashboard of Grafana, as the JSON that it imports. Its types are checked against Grafana's own in the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from alipes.deploy.dashboards.panels import ROWS, Panel

__all__ = ["dashboard"]

_SCHEMA: Final = 38
"""Version of Grafana's schema; newer ones take it."""
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_WIDTH, _HEIGHT, _COLUMNS = 6, 8, 24
"""Of a panel, and of the page, in Grafana's grid."""


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    return {
        "uid": "alipes",
        "title": "alipes",
        "tags": ["alipes", "inference"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                _variable("job", "label_values(alipes_build_info, job)"),
                _variable("instance", 'label_values(alipes_build_info{job=~"$job"}, instance)'),
                _variable("model", 'label_values(nv_inference_request_success{job=~"$job"}, model)'),
            ]
        },
        "panels": list(_panels()),
    }


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,  # whenever the time range changes: models come and go
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panels() -> Iterator[dict[str, Any]]:
    number, top = 1, 0
    for row in ROWS:
        place = {"h": 1, "w": _COLUMNS, "x": 0, "y": top}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        number, top = number + 1, top + 1
        for index, panel in enumerate(row.panels):
            line, column = divmod(index, _COLUMNS // _WIDTH)
            yield _panel(panel, number, column * _WIDTH, top + line * _HEIGHT)
            number += 1
        top += -(-len(row.panels) * _WIDTH // _COLUMNS) * _HEIGHT


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    custom: dict[str, Any] = {"fillOpacity": 30, "stacking": {"mode": "normal"}} if panel.is_stacked else {}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": query.expression, "legendFormat": query.legend, "range": True}
            for index, query in enumerate(panel.queries)
        ],
    }
