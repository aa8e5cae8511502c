"""Kinds that are added to an API server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.kube import ControlPlane, Refused

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def add_kinds_of(plane: ControlPlane, file: Path) -> None:
    """Adds the kinds of a file to an API server, and returns once it knows them."""
    # A megabyte of YAML takes many seconds to read here, and no time there.
    made = [plane.request("POST", _PATH, kind, "application/yaml") for kind in file.read_bytes().split(b"\n---\n")]
    for kind in made:
        name = kind["metadata"]["name"]
        plane.wait_until(lambda name=name: _is_established(plane, f"{_PATH}/{name}"), f"the API server knows {name}")
        # Clients look for it in the list of its group, which follows later.
        plane.wait_until(lambda kind=kind: _is_listed(plane, kind["spec"]), f"the API server lists {name}")


def _is_established(plane: ControlPlane, path: str) -> bool:
    conditions = plane.request("GET", path).get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _is_listed(plane: ControlPlane, kind: Mapping[str, Any]) -> bool:
    for version in kind["versions"]:
        if version["served"]:
            try:
                listed = plane.request("GET", f"/apis/{kind['group']}/{version['name']}")["resources"]
            except Refused:
                return False
            if all(one["name"] != kind["names"]["plural"] for one in listed):
                return False
    return True
