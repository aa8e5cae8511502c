"""Recovery from failures of a stream: the policy, and the errors of requests that could not be brought back."""

from __future__ import annotations

from typing import Final

from alipes.client.inference.backoff import Backoff
from alipes.client.inference.failures import LOST_STATE
from alipes.client.inference.sequence_queue import SequenceQueue
from alipes.errors import AlipesError, InferError, TransportError

__all__ = ["RecoveryPolicy", "advised", "not_back", "repeated", "stream_ended"]

_ADVICE: Final = (
    "begin a new sequence with sequence_start=True, or create the client with checkpoint=True, which restores sequences"
)
"""Advice in errors about a lost state."""


class RecoveryPolicy:
    """The recovery from failures.

    Attributes:
        retries: How often a request without a sequence is sent again.
        reconnect_s: How long a broken connection is retried.
        backoff: The pauses between attempts.
    """

    def __init__(self, retries: int, reconnect_s: float, backoff: Backoff) -> None:
        """Takes the values."""
        self.retries = retries
        self.reconnect_s = reconnect_s
        self.backoff = backoff


def stream_ended(address: str, queue: SequenceQueue, count: int, cause: AlipesError) -> AlipesError:
    """The error of a request that was on its way when the stream ended.

    Args:
        address: The server's.
        queue: The queue of the request.
        count: Requests of the queue that were on their way.
        cause: The end of the stream.
    """
    text = f"the stream to {address} ended ({cause})"
    if queue.sequence_id is None:
        return TransportError(f"{text} before this request was answered; it can be sent again")
    more = (
        "it did not come back in time: begin a new sequence with sequence_start=True" if queue.recoverable else _ADVICE
    )
    return TransportError(
        f"{text}: of sequence {queue.sequence_id}, {queue.answered} updates were answered and {count} were on "
        f"their way; the client cannot know which of those the server has executed; {more}"
    )


def not_back(address: str, queue: SequenceQueue, cause: AlipesError) -> AlipesError:
    """The error of requests whose sequence could not be brought back."""
    return TransportError(
        f"sequence {queue.sequence_id} could not be restored at {address} ({cause}): "
        "begin a new one with sequence_start=True"
    )


def advised(queue: SequenceQueue, error: AlipesError) -> AlipesError:
    """The error, with what to do where it says that the server has lost a sequence between two of its updates.

    A sequence whose updates were all answered before the loss gets the same advice as one with updates in flight.
    """
    if (
        queue.recoverable
        or not queue.answered
        or not isinstance(error, InferError)
        or not LOST_STATE.search(str(error))
    ):
        return error
    text = f"{error}; the server has lost its state after {queue.answered} answered updates: {_ADVICE}"
    return type(error)(text, model=error.model, request_id=error.request_id)


def repeated(error: AlipesError) -> AlipesError:
    """The same error for another request, with a traceback of its own."""
    return type(error)(*error.args)
