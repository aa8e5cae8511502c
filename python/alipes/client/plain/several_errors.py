"""One error for what has failed at several servers."""

from __future__ import annotations

from collections.abc import Mapping

from alipes.client.servers.addresses import with_reasons
from alipes.errors import AlipesError, InferError, InvalidArgument, TransportError

__all__ = ["at_none", "at_some", "no_server", "sequence_lost"]


def no_server(failures: Mapping[str, AlipesError]) -> AlipesError:
    """The error of a call that no server has answered: what one refused may be answered later, so it comes first.

    Args:
        failures: What each server was asked in vain with, by its address.
    """
    if not failures:
        return InvalidArgument("no server has the memory that outputs are to be written to any more: share it again")
    for error in failures.values():
        if isinstance(error, InferError) and not isinstance(error, TransportError):
            return error
    if len(failures) == 1:
        return next(iter(failures.values()))
    failure = TransportError(f"none of the {len(failures)} servers answers: {_each(failures)}")
    failure.reached = any(getattr(error, "reached", True) for error in failures.values())
    return failure


def at_some(failures: Mapping[str, AlipesError], count: int, what: str) -> AlipesError:
    """The error of a call to all servers that some have not answered, of the first one's class.

    Args:
        failures: The errors by the servers' addresses.
        count: The number of all servers.
        what: What was done at the others, as a sentence without its end.
    """
    return _like_first(failures, f"{what} at {count - len(failures)} of {count} servers: {_each(failures)}")


def at_none(
    failures: Mapping[str, AlipesError], count: int, what: str, changed: Mapping[str, AlipesError] | None = None
) -> AlipesError:
    """The error of a call to all servers that was taken back, since some have not answered, of the first one's class.

    Args:
        failures: The errors by the servers' addresses.
        count: The number of all servers.
        what: What was to be done, as a sentence without its end.
        changed: The errors of those where it may have been done and was not taken back.
    """
    text = f"{what} at none of {count} servers, because not all can be set: {_each(failures)}"
    if changed:
        text = f"{text}; these may have been set and cannot be set back: {_each(changed)}"
    return _like_first(failures, text)


def sequence_lost(sequence_id: object, address: str, error: TransportError) -> TransportError:
    """The error of an update whose server is gone: the state of its sequence is there, and nowhere else."""
    failure = TransportError(
        f"sequence {sequence_id!r} is at {address}, which does not answer ({error}): begin it anew with "
        "sequence_start=True, and it is at another server"
    )
    failure.reached = error.reached
    return failure


def _like_first(failures: Mapping[str, AlipesError], text: str) -> AlipesError:
    """An error of the first one's class, about the same model."""
    first = next(iter(failures.values()))
    error = type(first)(text)
    if isinstance(first, TransportError) and isinstance(error, TransportError):
        error.reached = first.reached
    if isinstance(first, InferError) and isinstance(error, InferError):
        error.model = first.model
    return error


def _each(failures: Mapping[str, AlipesError]) -> str:
    return with_reasons({address: f"{error}" for address, error in failures.items()})
