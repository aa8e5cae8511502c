"""What is next of a stream: the frame that is due, a gap, or a frame that comes too late."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from alipes.batch.frames.names import FrameName

__all__ = ["Back", "Due", "FrameOrder", "Gap", "Late", "Next"]

_AFTER_BACK: Final = 3
"""So many frames in a row from before what is due: their source has set its clock back."""


@dataclass(frozen=True, slots=True)
class Due:
    """The frame that is due.

    Attributes:
        name: Which one.
        seen_s: When it was seen.
        at_start: Whether it was there at the first look.
    """

    name: FrameName
    seen_s: float
    at_start: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """Frames that are missing.

    Attributes:
        first: The number of the first one.
        stop: The number of the frame behind the last one.
        step: From a number to the next one.
        reason: Why.
        file: The file, where it is there and cannot be read.
    """

    first: int
    stop: int
    step: int
    reason: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Late:
    """A frame that comes after others took its place."""

    name: FrameName


@dataclass(frozen=True, slots=True)
class Back:
    """The numbers of frames have gone back, and the stream goes on there."""

    due: int
    number: int


Next: TypeAlias = Due | Gap | Late | Back


class FrameOrder:
    """The frames that are there and not done. A value with a clock that is handed in."""

    def __init__(self, wait_s: float, due: int | None = None) -> None:
        """Nothing has come yet.

        Args:
            wait_s: How long a missing frame is waited for once a later one is there.
            due: The number of the first frame; that of the first one that comes by default.
        """
        self._wait_s, self._due = wait_s, due
        self._waiting: dict[int, Due] = {}
        self._late: list[Due] = []
        self._broken: dict[int, tuple[float, str]] = {}
        self._moved_s = float("-inf")
        self._again_s = float("-inf")

    @property
    def waiting(self) -> int:
        """Frames that are there and were not due yet."""
        return len(self._waiting)

    def add(self, frame: Due) -> None:
        """Adds a frame that has come."""
        number = frame.name.number
        if self._due is not None and number < self._due:
            self._late.append(frame)
        else:
            self._waiting.setdefault(number, frame)

    def next(self, now_s: float) -> Next | None:
        """What is next; `None` where that has yet to come."""
        if self._due is None:
            self._due = min(self._waiting, default=None)
        if self._due is None:
            return None
        if self._due in self._waiting:
            return None if now_s < self._again_s else self._waiting[self._due]
        if not self._waiting:
            # A frame that is delayed is followed by others in time: then nobody has set a clock back.
            return self._gone_back() if now_s - self._moved_s >= self._wait_s else None
        first = min(self._waiting)
        since_s = max(self._moved_s, min(frame.seen_s for frame in self._waiting.values()))
        if now_s - since_s < self._wait_s:
            return None
        frame = self._waiting[first]
        gap = Gap(self._due, first, frame.name.step, "did not arrive")
        self._due = first
        return gap

    def skip_waiting(self) -> None:
        """Leaves out everything that has come, and begins behind it."""
        if self._waiting:
            last = self._waiting[max(self._waiting)].name
            self._waiting.clear()
            self._due = last.number + last.step

    def done(self, frame: Due, now_s: float) -> list[Late]:
        """Goes on behind a frame that was done; gives the late ones that this leaves behind."""
        del self._waiting[frame.name.number]
        self._broken.pop(frame.name.number, None)
        self._due = frame.name.number + frame.name.step
        self._moved_s = now_s
        return self.leave_late()

    def leave_late(self) -> list[Late]:
        """The late frames, which nothing will be done with."""
        late, self._late = self._late, []
        return [Late(frame.name) for frame in late]

    def put_off(self, frame: Due, reason: str, now_s: float, again_s: float) -> Gap | None:
        """Tries a frame again that cannot be read; it is a gap once there was time enough to mend it.

        Args:
            frame: The frame.
            reason: Why it cannot be read.
            now_s: The time.
            again_s: Seconds until it is tried again.
        """
        number = frame.name.number
        since_s, _ = self._broken.setdefault(number, (now_s, reason))
        if now_s - since_s < self._wait_s:
            self._again_s = now_s + again_s
            return None
        return self.give_up(frame, reason, now_s)

    def give_up(self, frame: Due, reason: str, now_s: float) -> Gap:
        """A frame that nothing can be done with is a gap."""
        number, step = frame.name.number, frame.name.step
        del self._waiting[number]
        self._broken.pop(number, None)
        self._due, self._moved_s = number + step, now_s
        return Gap(number, number + step, step, reason, frame.name.file)

    def _gone_back(self) -> Back | None:
        """Whether late frames follow each other, and nothing else comes."""
        late = sorted(self._late, key=lambda frame: frame.name.number)[-_AFTER_BACK:]
        if len(late) < _AFTER_BACK or any(
            two.name.number != one.name.number + one.name.step for one, two in pairwise(late)
        ):
            return None
        assert self._due is not None
        back = Back(self._due, late[0].name.number)
        self._late = [frame for frame in self._late if frame not in late]
        self._waiting |= {frame.name.number: frame for frame in late}
        self._due = back.number
        return back
