"""A stream that is under way: frames are read, sent, answered and written in their order, each once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from alipes.batch.formats.base import Array
from alipes.batch.frames.arrivals import Arrivals, Arrived
from alipes.batch.frames.folder import FrameFolder, FrameReport, Replay, StreamFacts
from alipes.batch.frames.latency import Latencies
from alipes.batch.frames.names import frame_name
from alipes.batch.frames.order import Back, Due, FrameOrder, Gap, Late
from alipes.batch.frames.reading import FrameShape, read_frame
from alipes.batch.frames.sending import FrameFailed, FrameSender
from alipes.progress import Task

__all__ = ["FrameStream", "OnlineSummary", "StreamRules"]

_MOST_FILLED: Final = 60
"""A longer gap is not filled."""
_LOOK_S: Final = 0.005
"""How often the folder is looked at."""
_AGAIN_S: Final = 0.05
"""A frame that cannot be read is tried again after so long."""
_SHOW_S: Final = 0.2


@dataclass(frozen=True)
class OnlineSummary:
    """What a start of a stream came to.

    Attributes:
        folder: Where the answers are.
        frames: Frames that were answered.
        filled: Frames that zeros stand for.
        missing: Frames of gaps.
        late: Frames that came too late.
        median_s: Their latency from arrival to answers: that of half of the frames is less; `None` without frames.
        p99_s: That of 99 of 100 is.
        most_s: The longest.
    """

    folder: str
    frames: int
    filled: int
    missing: int
    late: int
    median_s: float | None
    p99_s: float | None
    most_s: float | None


@dataclass(frozen=True, slots=True)
class StreamRules:
    """How a stream goes on, and how long."""

    form: str
    gaps: str
    wait_s: float
    newest: bool
    most_frames: int | None
    silence_s: float | None


class FrameStream:
    """A stream that is under way."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a stream
        self,
        folder: FrameFolder,
        arrivals: Arrivals,
        sender: FrameSender,
        shape: FrameShape,
        facts: StreamFacts | None,
        rules: StreamRules,
        line: Task,
    ) -> None:
        """Goes on where a former start has ended.

        Args:
            folder: The folder of the answers.
            arrivals: The frames.
            sender: Sends them.
            shape: What each looks like.
            facts: At the first start: what is written of the stream once a frame is there.
            rules: How it goes on.
            line: Shows how it goes.
        """
        self._folder, self._arrivals, self._sender, self._shape = folder, arrivals, sender, shape
        self._facts, self._rules, self._line = facts, rules, line
        self._latencies = Latencies()
        self._frames = self._filled = self._missing = self._late = 0
        self._before: deque[Array] = deque()
        self._new, self._reason = True, ""
        reports = folder.reports()
        self._known = {report.file for report in reports if report.file}
        # What a former start has left out, or has done so long ago that its line is not among these.
        self._old = min((report.frame for report in reports if report.frame >= 0), default=0)
        due = self._resumed(reports)
        self._first_start = due is None
        self._order = FrameOrder(rules.wait_s, due)
        self._active_s = self._shown_s = time.monotonic()

    def run(self) -> OnlineSummary:
        """Does frames until it is to end."""
        self._show(0.0)
        while not self._ends():
            now_s = time.monotonic()
            for arrived in self._arrivals.look(now_s):
                self._add(arrived)
            self._start_newest()
            coming = self._order.next(now_s)
            if isinstance(coming, Due):
                self._do(coming)
            elif isinstance(coming, Gap):
                self._leave_gap(coming)
            elif isinstance(coming, Back):
                reason = f"the numbers of frames went back from {coming.due} to {coming.number}"
                self._folder.add(FrameReport(coming.due, "back", next=coming.number, reason=reason))
                self._begin(reason)
            else:
                time.sleep(_LOOK_S)
        self._report_late(self._order.leave_late())
        self._show(0.0)
        return OnlineSummary(
            str(self._folder.path),
            self._frames,
            self._filled,
            self._missing,
            self._late,
            self._latencies.percentile_s(50),
            self._latencies.percentile_s(99),
            self._latencies.percentile_s(100),
        )

    def _ends(self) -> bool:
        most, silence_s = self._rules.most_frames, self._rules.silence_s
        if most is not None and self._frames + self._filled >= most:
            return True
        return silence_s is not None and not self._order.waiting and time.monotonic() - self._active_s > silence_s

    def _resumed(self, reports: Sequence[FrameReport]) -> int | None:
        """The number that is due after those of a former start, whose frames the state is made of again."""
        moved = [report for report in reports if report.kind in ("done", "filled", "gap", "back")]
        if not moved:
            return None
        needed: list[Replay] = []
        for report in reversed(moved):
            if report.kind not in ("done", "filled"):
                break
            needed.append(Replay(report.frame, report.kind == "filled"))
            if report.new or len(needed) >= self._most_before():
                break
        if not needed:
            self._reason = "a gap"
            return moved[-1].next
        found = self._folder.replay(reversed(needed), self._shape.zeros)
        if found is None:
            self._reason = "the frames before a restart are not there any more"
        else:
            self._before.extend(found)
            self._new = False
        return moved[-1].next

    def _most_before(self) -> int:
        """Frames that the state depends on."""
        return max(1, -(-self._sender.memory // max(self._shape.updates, 1)))

    def _add(self, arrived: Arrived) -> None:
        self._active_s = time.monotonic()
        name = frame_name(arrived.file)
        if arrived.at_start and arrived.file in self._known:
            return
        if name is None:
            self._folder.add(FrameReport(-1, "ignored", arrived.file, reason="its name has no number"))
            return
        if arrived.at_start and (name.number < self._old or self._folder.is_done(name.number, self._rules.form)):
            return
        self._order.add(Due(name, arrived.seen_s, arrived.at_start))

    def _start_newest(self) -> None:
        if self._rules.newest and self._first_start:
            self._first_start = False
            self._order.skip_waiting()

    def _do(self, frame: Due) -> None:
        number, now_s = frame.name.number, time.monotonic()
        if self._folder.is_done(number, self._rules.form):  # the numbers went back to it
            self._report_late([Late(frame.name), *self._order.done(frame, now_s)], "its number was done before")
            self._begin("a frame whose number was done before")
            return
        try:
            samples = read_frame(self._arrivals.folder / frame.name.file, self._shape)
        except ValueError as error:
            gap = self._order.put_off(frame, str(error), now_s, _AGAIN_S)
            if gap is not None:
                self._leave_gap(gap)
            return
        if self._shape.samples is None:
            self._shape.samples = samples.shape[-1]
        try:
            self._answer(number, frame.name.step, samples, frame)
        except FrameFailed as error:
            self._report_gap(self._order.give_up(frame, str(error), time.monotonic()))
            return
        self._report_late(self._order.done(frame, time.monotonic()))
        self._active_s = time.monotonic()

    def _answer(self, number: int, step: int, samples: Array, frame: Due | None, reason: str = "") -> None:
        """Sends a frame, and writes its answers.

        Raises:
            FrameFailed: If the model fails on it.
        """
        if self._facts is not None:
            self._folder.write_facts(replace(self._facts, frame_samples=samples.shape[-1]))
            self._facts = None
        before = [update for one in self._before for update in self._shape.cut(one)]
        if self._new:
            self._sender.begin()
        columns = self._sender.send(self._shape.cut(samples), () if self._new else before)
        most = self._most_before()
        if frame is not None:
            self._folder.add_copy(number, samples, most)
        output = self._folder.write_answers(number, self._rules.form, columns)
        latency_s = None if frame is None or frame.at_start else time.monotonic() - frame.seen_s
        self._folder.add(
            FrameReport(
                number,
                "filled" if frame is None else "done",
                "" if frame is None else frame.name.file,
                output,
                number + step,
                self._new,
                reason or (self._reason if self._new else ""),
                latency_s,
            )
        )
        if self._new:
            self._before.clear()
        self._before.append(samples)
        while len(self._before) > most:
            self._before.popleft()
        self._new, self._reason = False, ""
        if frame is None:
            self._filled += 1
        else:
            self._frames += 1
        if latency_s is not None:
            self._latencies.add(latency_s)
        self._show(_SHOW_S)

    def _leave_gap(self, gap: Gap) -> None:
        """Fills a gap, or begins anew behind it."""
        numbers = range(gap.first, gap.stop, gap.step)
        if self._rules.gaps != "fill" or self._shape.samples is None or len(numbers) > _MOST_FILLED:
            self._report_gap(gap)
            return
        for number in numbers:
            try:
                self._answer(number, gap.step, self._shape.zeros(), None, gap.reason)
            except FrameFailed as error:
                self._report_gap(Gap(number, gap.stop, gap.step, f"{gap.reason}; zeros in its place: {error}"))
                return

    def _report_gap(self, gap: Gap) -> None:
        self._folder.add(FrameReport(gap.first, "gap", gap.file, next=gap.stop, reason=gap.reason))
        self._missing += len(range(gap.first, gap.stop, gap.step))
        self._begin("a gap")
        self._show(_SHOW_S)

    def _begin(self, reason: str) -> None:
        self._new, self._reason = True, reason
        self._before.clear()

    def _report_late(self, late: Sequence[Late], reason: str = "others took its place") -> None:
        for one in late:
            self._folder.add(FrameReport(one.name.number, "late", one.name.file, reason=reason))
            self._late += 1

    def _show(self, every_s: float) -> None:
        now_s = time.monotonic()
        if self._line.shown and now_s - self._shown_s >= every_s:
            self._shown_s = now_s
            self._line.step(self._view())

    def _view(self) -> str:
        """One line for a terminal."""
        words = [f"{self._frames} frames"]
        last_s, median_s = self._latencies.last_s, self._latencies.percentile_s(50)
        p99_s = self._latencies.percentile_s(99)
        if last_s is not None and median_s is not None and p99_s is not None:
            words.append(f"{1e3 * last_s:.1f} ms (median {1e3 * median_s:.1f}, p99 {1e3 * p99_s:.1f})")
        for number, what in (
            (self._filled, "filled"),
            (self._missing, "missing"),
            (self._late, "late"),
            (self._order.waiting, "waiting"),
        ):
            if number:
                words.append(f"{number} {what}")
        return " · ".join(words)
