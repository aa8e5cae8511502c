"""Windows of several kinds of requests, of streams, and logs of requests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from alipes import ConfigError
from alipes.loadtest import Closed, Histogram, Level, ModelRequests, Report, RequestLog, Share, Streams, Window
from alipes.loadtest.cells import HEADINGS, STREAM_HEADINGS, level_rows, stream_rows
from alipes.loadtest.mix import labels, read_shares


def histogram(*times_ms: int) -> Histogram:
    times, counts = np.unique(np.array(times_ms, np.uint64) * 1_000_000, return_counts=True)
    return Histogram(times, counts.astype(np.uint64))


def window(*times_ms: int, streams: Streams | None = None, parts: tuple[Window, ...] = ()) -> Window:
    return Window(1.0, histogram(*times_ms), Histogram(), Histogram(), 0, 0, 0, streams=streams, parts=parts)


def test_parts_are_merged_one_by_one() -> None:
    first = window(1, 2, 9, parts=(window(1, 2), window(9)))
    second = window(3, 8, parts=(window(3), window(8)))
    merged = Window.merged([first, second])
    assert [part.latencies.times_ns.tolist() for part in merged.parts] == [[1e6, 2e6, 3e6], [8e6, 9e6]]
    assert Window.merged([window(1), window(2)]).parts == ()


def test_responses_of_streams_add_up() -> None:
    streams = Streams(3, histogram(1), histogram(2, 2))
    merged = Window.merged([window(5, streams=streams), window(6, streams=replace(streams, responses=4))]).streams
    assert merged is not None
    assert (merged.responses, merged.first.count, merged.gaps.count) == (7, 2, 4)
    assert Window.merged([window(1)]).streams is None


def log(*responses: int) -> RequestLog:
    count, total = len(responses), sum(responses)
    numbers = np.arange(count, dtype=np.uint64)
    return RequestLog(
        np.zeros(count, np.uint32), numbers, numbers, numbers, numbers, np.zeros(count, bool),
        np.array(responses, np.uint64), np.arange(total, dtype=np.uint64), missing=1,
    )  # fmt: skip


def test_each_request_of_a_log_has_its_responses() -> None:
    merged = RequestLog.merged([log(2, 0, 1), log(3)])
    assert (len(merged), merged.missing) == (4, 2)
    assert [merged.responses_of(entry).tolist() for entry in range(4)] == [[0, 1], [], [2], [0, 1, 2]]


def test_shares_have_names_of_their_own() -> None:
    shares = read_shares([("a", 2), Share(ModelRequests("a")), Share("a", name="b"), Share("b")])
    assert labels(shares) == ["a", "a 2", "b", "b 4"]
    assert [share.weight for share in shares] == [2, 1, 1, 1]
    assert read_shares("a") == [Share("a")]
    with pytest.raises(ConfigError, match="empty"):
        read_shares([])


def mixed() -> Level:
    streamed = window(9, streams=Streams(3, histogram(1), histogram(2, 2)))
    whole = window(1, 2, 9, streams=streamed.streams, parts=(window(1, 2), streamed))
    return Level(Closed(2), [whole], 1, True, 1, names=("plain", "streamed"))


def test_the_table_has_a_row_for_each_share_below_its_level() -> None:
    level = mixed()
    rows = level_rows(level)
    assert [row[:2] for row in rows] == [("2 in flight", "3/s"), ("plain", "2/s"), ("streamed", "1/s")]
    assert all(len(row) == len(HEADINGS) for row in rows)
    [streams] = stream_rows(level)
    assert streams == ("streamed", "3/s", "1 ms", "1 ms", "2 ms", "2 ms")
    assert len(streams) == len(STREAM_HEADINGS)
    assert stream_rows(Level(Closed(1), [window(1)], 1, True, 1)) == []


def test_shares_are_a_table_and_in_the_document() -> None:
    report = Report("http://a:1", [mixed()])
    rows = report.share_rows()
    assert [(row["load"], row["share"], row["answers"]) for row in rows] == [(2, "plain", 2), (2, "streamed", 1)]
    assert rows[0].keys() == rows[1].keys()
    [level] = report.to_dict()["levels"]
    assert [(share["share"], share["responses_rate"]) for share in level["shares"]] == [
        ("plain", None),
        ("streamed", 3.0),
    ]
    assert "shares" not in Report("a", [Level(Closed(1), [window(1)], 1, True, 1)]).to_dict()["levels"][0]
