"""Which versions of a model are served: the version policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from alipes.config.schema import ModelConfig


@dataclass(frozen=True, slots=True)
class Latest:
    """The highest ``count`` versions."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class All:
    """Every version that has a directory."""


@dataclass(frozen=True, slots=True)
class Specific:
    """The versions that are named, as far as they have a directory."""

    versions: tuple[int, ...]


VersionPolicy = Latest | All | Specific


def policy_of(config: ModelConfig) -> VersionPolicy:
    """The policy that a model's configuration asks for; the latest version where it asks for none.

    As in Triton, a policy that chooses nothing serves all versions, and `latest {}` none, for its number reads as 0.
    """
    policy = config.version_policy
    match policy.WhichOneof("policy_choice"):
        case "specific":
            return Specific(tuple(policy.specific.versions))
        case "latest":
            return Latest(policy.latest.num_versions)
        case _:
            return All() if config.HasField("version_policy") else Latest()


def choose_versions(policy: VersionPolicy, available: Sequence[int]) -> tuple[int, ...]:
    """The versions to serve, ascending; empty when the policy fits none of ``available``."""
    ascending = sorted(set(available))
    match policy:
        case Latest(count):
            return tuple(ascending[-count:]) if count > 0 else ()
        case All():
            return tuple(ascending)
        case Specific(wanted):
            return tuple(version for version in ascending if version in wanted)


def missing_versions(policy: VersionPolicy, available: Sequence[int]) -> tuple[int, ...]:
    """Versions that the policy names and that have no directory, ascending."""
    if isinstance(policy, Specific):
        return tuple(sorted(set(policy.versions) - set(available)))
    return ()
