"""The frames of a stream as one sequence of a server, which is begun again where the server has lost its state."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from alipes.batch.formats.base import Array
from alipes.batch.sender import is_trouble
from alipes.client import StreamClient
from alipes.errors import AlipesError, ConfigError, InferError

__all__ = ["FrameFailed", "FrameSender"]

_FIRST_WAIT_S: Final = 0.05
_MOST_WAIT_S: Final = 1.0
_SEQUENCES: Final = 0x7FFF_FFFF


class FrameFailed(Exception):
    """The model cannot answer a frame."""


class FrameSender:
    """Sends frames, one after the other.

    Attributes:
        update: An update of the model's stream.
        memory: Updates that its state depends on.
    """

    def __init__(
        self, connect: Callable[[], StreamClient], sequence: int, overlap: int | None, reconnect_s: float
    ) -> None:
        """Connects.

        Args:
            connect: Opens a client.
            sequence: The number of the sequence: a restart takes the place of what it has left in the server.
            overlap: Updates that the state depends on, where the client does not know it.
            reconnect_s: How long a server is looked for.

        Raises:
            ConfigError: If the model takes no stream, or nobody knows how far back its state goes.
            AlipesError: If the server cannot be reached, or has no such model.
        """
        self._connect, self._sequence, self._reconnect_s = connect, sequence % _SEQUENCES + 1, reconnect_s
        self._client: StreamClient | None = self._opened()
        model, states = self._client.model_name, self._client.states
        if len(states) != 1:
            self.close()
            raise ConfigError(
                f"model '{model}' takes {len(states)} streams, and frames are those of one: name a streaming model",
                key="model",
            )
        memory = self._client.memory if overlap is None else overlap
        if memory is None:
            self.close()
            raise ConfigError(
                f"how many updates the state of model '{model}' depends on is unknown: say it with --overlap",
                key="overlap",
            )
        self.memory = memory
        self.update = states[0].tensor
        self._live = False

    def close(self) -> None:
        """Ends the connection."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(AlipesError):
                client.cancel()

    def begin(self) -> None:
        """Has the state begin anew with the next frame."""
        self._live = False

    def send(self, updates: Sequence[Array], before: Sequence[Array]) -> dict[str, Array]:
        """What the updates of a frame are answered with.

        A server that has lost the sequence, or was started anew, gets the updates before it again.

        Args:
            updates: Those of the frame.
            before: Those that the state depends on; none where it begins with this frame.

        Raises:
            FrameFailed: If the model fails on it.
            AlipesError: If no server answers.
        """
        deadline_s = time.monotonic() + self._reconnect_s
        wait_s = _FIRST_WAIT_S
        refused = False
        while True:
            resumed = self._live
            try:
                return self._sent(updates, () if resumed else before)
            except AlipesError as error:
                self._live = False
                if is_trouble(error):
                    self.close()
                    if time.monotonic() + wait_s > deadline_s:
                        raise
                    time.sleep(wait_s)
                    wait_s = min(2 * wait_s, _MOST_WAIT_S)
                elif isinstance(error, InferError):
                    # The server may have forgotten the sequence: it is begun again once.
                    if refused or not resumed:
                        raise FrameFailed(str(error)) from error
                    refused = True
                else:
                    raise

    def _sent(self, updates: Sequence[Array], before: Sequence[Array]) -> dict[str, Array]:
        if self._client is None:
            self._client = self._opened()
        client, every = self._client, [*before, *updates]
        answers = [
            client.submit(
                {self.update.name: one}, sequence_id=self._sequence, sequence_start=not self._live and number == 0
            )
            for number, one in enumerate(every)
        ]
        failure: AlipesError | None = None
        found = []
        for answer in answers:  # all of them are answered, some with errors
            try:
                found.append(answer.result())
            except AlipesError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        self._live = True
        return self._joined(found[len(before) :])

    def _joined(self, answers: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
        """Answers behind each other: means of a stream along its time, everything else row by row."""
        size = self.update.shape[-1]
        joined = {}
        for name in answers[0]:
            arrays = [np.asarray(one[name]) for one in answers]
            if arrays[0].ndim > 1 and arrays[0].shape[0] == 1 and arrays[0].shape[-1] == size:
                joined[name] = np.concatenate(arrays, axis=-1)[0]
            else:
                joined[name] = np.concatenate(arrays)
        return joined

    def _opened(self) -> StreamClient:
        client = self._connect()
        client.__enter__()
        with suppress(InferError):  # a model may refuse zeros
            client.warm_up()
        return client
