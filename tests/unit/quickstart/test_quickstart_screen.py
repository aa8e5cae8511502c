import io

import numpy as np
import pytest
from alipes.errors import ServerStartError
from alipes.quickstart import digits
from alipes.quickstart.batches import BatchStatistic
from alipes.quickstart.child import Addresses
from alipes.quickstart.load import LoadResult
from alipes.quickstart.protocols import ProtocolResult
from alipes.quickstart.screen import Screen, pick
from support.load_windows import window

ADDRESSES = Addresses("127.0.0.1:41001", "127.0.0.1:41002", "127.0.0.1:41003")


def _tour(screen: Screen) -> None:
    data = digits.held_out()
    probabilities = np.eye(10, dtype=np.float32)[data.labels]
    result = ProtocolResult("HTTP, JSON", probabilities, len(data.labels), 0.1)
    screen.title(len(data.labels))
    with screen.waiting("starting the server"):
        pass
    screen.ready(ADDRESSES, 0.2)
    screen.drawings(data, probabilities)
    screen.protocols([result])
    with screen.progress(1) as tick:
        tick(0.5)
    screen.load(LoadResult(32, window(10_000, 1.0, tester_cores=0.99)))
    screen.batches([BatchStatistic(1, 10, 10_000), BatchStatistic(64, 10, 10_000)])
    screen.next_steps(None)
    screen.stopped(0)


def test_plain_output_has_no_escapes_and_fits_eighty_columns() -> None:
    stream = io.StringIO()
    _tour(Screen(stream))
    text = stream.getvalue()
    assert "\x1b" not in text
    too_wide = [line for line in text.splitlines() if len(line.rstrip()) > 80]
    assert too_wide == []
    assert "10,000 requests/s" in text
    assert "p50 1.00 ms" in text
    assert "360 scans" in text


def test_a_terminal_without_block_characters_gets_plain_ones() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    _tour(Screen(stream))
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert "####" in text
    assert "10,000 requests/s" in text


@pytest.mark.parametrize(("busy", "limited"), [(0.99, True), (0.5, False)])
def test_the_client_is_called_the_limit_only_where_it_is(busy: float, limited: bool) -> None:
    stream = io.StringIO()
    Screen(stream).load(LoadResult(32, window(10, 1.0, tester_cores=busy)))
    assert ("it may be the limit" in stream.getvalue()) is limited


def test_a_failure_shows_the_log_and_what_to_type() -> None:
    stream = io.StringIO()
    Screen(stream).failed(ServerStartError("it ended [early]"), "E last words [of it]")
    text = stream.getvalue()
    assert "it ended [early]" in text
    assert "E last words [of it]" in text
    assert "alipes serve" in text


def test_shown_scans_are_different_digits_with_a_wrong_one_last() -> None:
    labels = np.array([3, 3, 4, 5, 6, 7], np.uint8)
    right = np.array([True, True, True, False, True, True])
    assert pick(right, labels, 4) == [0, 2, 4, 3]
    assert pick(np.full(6, True), labels, 4) == [0, 2, 3, 4]
    assert pick(np.full(6, False), labels, 4) == [0]
    assert pick(right, labels, 1) == [0]
