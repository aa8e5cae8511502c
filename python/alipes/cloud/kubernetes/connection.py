"""A client of `kubernetes`, from what the caller has."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alipes.errors import CloudError, NotOffered

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

__all__ = ["Connection", "connect"]


@dataclass(frozen=True)
class Connection:
    """A client, and what a kubeconfig says beside it."""

    client: ApiClient
    namespace: str
    command: tuple[str, ...]
    """How `kubectl` is called for the same cluster."""


def connect(kubeconfig: str | Path | None, context: str | None, client: ApiClient | None) -> Connection:
    """A client: the caller's own, or that of a kubeconfig, or in a pod that of its service account.

    Raises:
        CloudError: If there is no kubeconfig, or it lacks the context.
        NotOffered: If the package `kubernetes` is not installed.
    """
    try:
        from kubernetes import config
    except ImportError as error:
        raise NotOffered("clusters need the package kubernetes: pip install 'alipes[deploy]'") from error
    if client is not None:
        return Connection(client, "default", ("kubectl",))
    try:
        return _of_file(config, kubeconfig, context)
    except config.ConfigException as error:
        inside = _of_pod(config) if kubeconfig is None and context is None else None
        if inside is None:
            raise CloudError(f"no cluster to talk to: {error}", reason="kubeconfig") from error
        return inside


def _of_file(config: Any, kubeconfig: str | Path | None, context: str | None) -> Connection:
    file = None if kubeconfig is None else os.fspath(kubeconfig)
    contexts, active = config.list_kube_config_contexts(config_file=file)
    named = [one for one in contexts if one["name"] == context] if context else [active]
    if not named:
        known = ", ".join(one["name"] for one in contexts)
        raise CloudError(f"the kubeconfig has no context {context!r}; it has: {known}", reason="kubeconfig")
    client = config.new_client_from_config(config_file=file, context=context, persist_config=False)
    options = [f"--kubeconfig={file}"] if file else []
    options += [f"--context={context}"] if context else []
    return Connection(client, named[0]["context"].get("namespace") or "default", ("kubectl", *options))


def _of_pod(config: Any) -> Connection | None:
    """The client of the service account of a pod; None elsewhere."""
    from kubernetes import client

    configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException:
        return None
    return Connection(client.ApiClient(configuration), "default", ("kubectl",))
