"""Where the models of a deployment are: in the image, in a volume, or in a bucket."""

from __future__ import annotations

from typing import Final, NamedTuple

from alipes.deploy.image.settings import MODELS
from alipes.errors import ConfigError

__all__ = ["BUCKETS", "VOLUME", "Claim", "check_machine", "check_repository", "claim_of", "served"]

VOLUME: Final = "pvc://"
BUCKETS: Final = ("gs://", "s3://", "az://")


class Claim(NamedTuple):
    """A claim of a volume, and the folder in it; nothing is all of it."""

    name: str
    folder: str


def claim_of(repository: str) -> Claim | None:
    """The claim that an address names, where it names one."""
    if not repository.startswith(VOLUME):
        return None
    name, _, folder = repository.removeprefix(VOLUME).partition("/")
    return Claim(name, folder.strip("/"))


def served(repository: str) -> str:
    """What the server is asked to serve."""
    return MODELS if repository.startswith(VOLUME) else repository


def check_repository(repository: str) -> None:
    """Refuses what no pod could reach.

    Raises:
        ConfigError: If it is none of the places that a pod can reach.
    """
    claim = claim_of(repository)
    if claim is not None and (not claim.name or ".." in claim.folder.split("/")):
        raise ConfigError(f"repository: write pvc://CLAIM/FOLDER, not '{repository}'", key="repository")
    if claim is None and not repository.startswith(("/", *BUCKETS)):
        raise ConfigError(
            f"repository: a pod cannot reach the folder '{repository}' of this machine",
            key="repository",
            hint="put the models into the image with `alipes deploy image`, into a bucket (gs://, s3://, az://), or "
            "into a volume: pvc://CLAIM",
        )


def check_machine(repository: str) -> None:
    """Refuses what one machine does not have.

    Raises:
        ConfigError: If it is a volume of a cluster.
    """
    if claim_of(repository) is not None:
        raise ConfigError(
            f"repository: '{repository}' is a volume of Kubernetes; name a folder or a bucket", key="repository"
        )
