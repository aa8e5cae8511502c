"""The API server of a cluster of Google Cloud, reached with Google's credentials."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from alipes.cloud.google.session import Session
from alipes.errors import CloudError
from alipes.process_folder import ProcessFolder

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

__all__ = ["api_client"]


def api_client(cluster: Any, session: Session) -> ApiClient:
    """A client of `kubernetes` for a cluster, whose token is renewed when it has run out.

    Args:
        cluster: The message that Google's API has of it.
        session: The connection to Google's API.

    Raises:
        CloudError: If the cluster has no address yet.
    """
    from kubernetes import client

    if not cluster.endpoint:
        raise CloudError(f"cluster {cluster.name} has no address yet: wait until it is ready", reason="PROVISIONING")
    folder = ProcessFolder("cloud")
    authority = folder.path / "ca.pem"
    authority.write_bytes(base64.b64decode(cluster.master_auth.cluster_ca_certificate))

    def sign(configuration: Any) -> None:
        if not session.credentials.valid:
            session.renew()
        configuration.api_key["authorization"] = f"Bearer {session.credentials.token}"

    configuration = client.Configuration(host=f"https://{cluster.endpoint}")
    configuration.ssl_ca_cert = str(authority)
    configuration.refresh_api_key_hook = sign
    sign(configuration)
    made = client.ApiClient(configuration)
    made.alipes_folder = folder  # it goes with the client
    return made
