"""A load for several servers: which part of it goes where."""

from __future__ import annotations

from alipes.loadtest.mix import Share, spread_over


def test_a_share_without_a_server_is_divided_among_all() -> None:
    shares = spread_over([Share("m", 2.0), Share("n", 3.0, "c:3")], ["a:1", "b:2"])
    assert [(share.requests, share.weight, share.address, share.name) for share in shares] == [
        ("m", 1.0, "a:1", "m@a:1"),
        ("m", 1.0, "b:2", "m@b:2"),
        ("n", 3.0, "c:3", ""),
    ]
    assert [share.name for share in spread_over([Share("m")], ["a:1", "b:2"])] == ["a:1", "b:2"]


def test_for_one_server_nothing_changes() -> None:
    shares = [Share("m", 2.0)]
    assert spread_over(shares, ["a:1"]) == shares
