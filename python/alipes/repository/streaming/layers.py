"""Snapshotter and averager as PyTorch modules, which give the bits of the server's own.

Importing this module imports PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

__all__ = ["OnlineAverager", "Snapshotter", "UnbiasedAverager"]

try:
    torch: Any = import_module("torch")
except ModuleNotFoundError as error:
    raise ImportError(
        "exporting a streaming model needs PyTorch: pip install 'alipes[torch]'; "
        "the server's own streaming models need no package"
    ) from error


class Snapshotter(torch.nn.Module):  # type: ignore[misc]
    """Overlapping windows of a signal that comes update by update: samples are copied and nothing else."""

    def __init__(
        self, snapshot_size: int, stride_size: int, batch_size: int, channels_per_snapshot: Sequence[int]
    ) -> None:
        """Sizes in samples.

        Args:
            snapshot_size: Of a window.
            stride_size: New ones of each window.
            batch_size: Windows of an update.
            channels_per_snapshot: Channels of each output; 0 for one channel without an axis for it.
        """
        super().__init__()
        self.snapshot, self.stride, self.batch = snapshot_size, stride_size, batch_size
        self.channels = tuple(channels_per_snapshot)
        # Samples move in pieces as long as possible, so that the table of what goes where stays small.
        self.piece = math.gcd(snapshot_size, stride_size)
        firsts = torch.arange(1, batch_size + 1)[:, None] * (stride_size // self.piece)
        places = firsts + torch.arange(snapshot_size // self.piece)
        self.register_buffer("places", places.flatten(), persistent=False)

    def forward(self, snapshot_update: Any, input_snapshot: Any) -> tuple[Any, ...]:
        """From an update and the newest window to the windows of all outputs, and the newest one then."""
        channels = sum(max(one, 1) for one in self.channels)
        samples = torch.cat([input_snapshot, snapshot_update], dim=2)
        pieces = samples.reshape(channels, -1, self.piece)
        windows = torch.index_select(pieces, 1, self.places)
        windows = windows.reshape(channels, self.batch, self.snapshot).permute(1, 0, 2)
        outputs, first = [], 0
        for count in self.channels:
            outputs.append(windows[:, first : first + count] if count else windows[:, first])
            first += max(count, 1)
        return (*outputs, samples[:, :, self.batch * self.stride :])


class _Sums(torch.nn.Module):  # type: ignore[misc]
    """Sums of overlapping predictions, added in the order in which these come."""

    def __init__(self, update_size: int, batch_size: int, num_updates: int, num_channels: int | None = None) -> None:
        """Sizes in samples.

        Args:
            update_size: By which each prediction is ahead of the one before it.
            batch_size: Predictions of a request.
            num_updates: Predictions that make a mean.
            num_channels: Channels; None or 0 for one channel without an axis for it.
        """
        super().__init__()
        self.update, self.batch, self.updates, self.channels = update_size, batch_size, num_updates, num_channels or 0

    def add(self, update: Any, input_online_average: Any) -> tuple[Any, Any]:
        """The sums that are complete, and those that are not, channel by channel."""
        channels, done = max(self.channels, 1), self.batch * self.update
        newest = update[..., -self.updates * self.update :]
        shares = newest.reshape(self.batch, channels, self.updates, self.update) / self.updates
        sums = input_online_average.reshape(channels, -1)
        # The part of each prediction that came first for its samples is added first: for every sample the predictions
        # come in their order.
        for part in range(self.updates - 1, -1, -1):
            parts = shares[:, :, part].permute(1, 0, 2).reshape(channels, done)
            behind = (self.updates - 1 - part) * self.update
            sums = sums + torch.nn.functional.pad(parts, (part * self.update, behind))
        return sums[:, :done], torch.nn.functional.pad(sums[:, done:], (0, done))

    def shaped(self, means: Any) -> Any:
        """Means as the model gives them."""
        return means[None] if self.channels else means


class OnlineAverager(_Sums):
    """The mean of overlapping predictions; those that never came count as zero."""

    def forward(self, update: Any, input_online_average: Any) -> tuple[Any, ...]:
        """From predictions and incomplete sums to means, and the sums that are incomplete then."""
        means, rest = self.add(update, input_online_average)
        return self.shaped(means), rest if self.channels else rest[0]


class UnbiasedAverager(_Sums):
    """An averager whose first means are those of the predictions that there are."""

    def forward(self, update: Any, input_online_average: Any, input_seen: Any) -> tuple[Any, ...]:
        """The same, from and to the number of predictions seen, which counts up to as many as make a mean."""
        sums, rest = self.add(update, input_online_average)
        first = torch.arange(1, self.batch + 1, dtype=input_seen.dtype)
        counts = torch.clamp(input_seen + first, max=self.updates)
        # A number divided by a tensor would be multiplied by its reciprocal, which rounds twice.
        weights = torch.full_like(counts, self.updates) / counts
        means = (sums.reshape(-1, self.batch, self.update) * weights[None, :, None]).reshape(sums.shape)
        seen = torch.clamp(input_seen + self.batch, max=self.updates)
        return self.shaped(means), rest if self.channels else rest[0], seen
