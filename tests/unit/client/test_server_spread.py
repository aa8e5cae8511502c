"""Which of several servers is asked: by load, by turn, and by what is known of each."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest
from alipes.client.servers.addresses import Place
from alipes.client.servers.spread import Server, Servers
from alipes.errors import NotReady, Overloaded, TransportError
from support.waiting import until


class Scripted:
    """Servers by name, of which a test says who answers."""

    def __init__(self, names: str) -> None:
        self.names = names
        self.live: dict[str, bool] = {}
        self.looks: list[str] = []
        self.servers: Servers[str] = Servers(self._where, lambda place: place.address, self._is_live, renewed=False)

    def _where(self) -> Iterable[Place]:
        return [Place(name) for name in self.names]

    def _is_live(self, name: str, _: float) -> bool:
        self.looks.append(name)
        return self.live.get(name, True)

    def enter(self, count: int, besides: str = "") -> str:
        """The servers of the next calls, which stay in flight."""
        unfit = [server for server in self.servers.all if server.member in besides]
        found = [self.servers.enter(unfit) for _ in range(count)]
        return "".join("-" if server is None else server.member for server in found)

    def one(self, name: str) -> Server[str]:
        """A server by its name."""
        return next(server for server in self.servers.all if server.member == name)


@pytest.fixture
def three() -> Iterator[Scripted]:
    scripted = Scripted("abc")
    yield scripted
    scripted.servers.close()


def test_calls_one_after_the_other_go_by_turn(three: Scripted) -> None:
    seen = ""
    for _ in range(7):
        seen += three.enter(1)
        three.servers.leave(three.one(seen[-1]))
    assert seen == "abcabca"


def test_the_server_with_the_fewest_calls_is_next(three: Scripted) -> None:
    assert three.enter(3) == "abc"
    three.servers.leave(three.one("b"))
    assert three.enter(1) == "b"
    three.servers.leave(three.one("c"))
    assert three.enter(1) == "c"
    assert sorted(three.enter(3)) == ["a", "b", "c"]


def test_a_server_that_is_lost_comes_last_until_it_answers(three: Scripted) -> None:
    three.live["b"] = False
    three.servers.lose(three.one("b"), TransportError("gone"))
    assert sorted(three.enter(4)) == ["a", "a", "c", "c"]
    assert three.enter(1, besides="ac") == "-"
    for name in "ac":
        three.live[name] = False
        three.servers.lose(three.one(name), TransportError("gone"))
    assert three.enter(1, besides="ac") == "b"
    three.live["b"] = True
    until(lambda: three.one("b").lost is None)
    assert three.enter(2) == "bb"


def test_a_server_that_refuses_comes_last_for_a_while(three: Scripted) -> None:
    three.servers.note(three.one("a"), Overloaded("full", retry_after_s=1e6))
    three.servers.note(three.one("b"), NotReady("loading"))
    assert three.enter(1) == "c"
    assert three.enter(1, besides="c") in {"a", "b"}
    three.servers.note(three.one("c"), Overloaded("full", retry_after_s=1e6))
    assert three.enter(1) != "-"


def test_a_server_that_answers_nothing_for_a_while_is_looked_at(three: Scripted) -> None:
    three.live["a"] = False
    assert three.enter(2) == "ab"
    until(lambda: three.one("a").lost is not None and "b" in three.looks)
    assert three.one("b").lost is None
    assert "did not answer a look" in str(three.one("a").lost)
    assert "c" not in three.looks


def test_sequences_go_to_the_server_with_the_fewest_and_stay(three: Scripted) -> None:
    servers = three.servers
    for sequence in range(6):
        server = servers.enter_for(sequence, True, ())
        assert server is not None
        servers.remember(sequence, server)
        servers.leave(server)
    assert [server.sequences for server in servers.all] == [2, 2, 2]
    first = servers.enter_for(0, False, ())
    assert first is not None
    three.live[first.member] = False  # else it may be found again at once
    servers.lose(first, TransportError("gone"))
    assert servers.enter_for(0, False, ()) is first
    again = servers.enter_for(0, True, ())
    assert again is not None
    assert again is not first
    servers.forget(0)
    assert first.sequences == 1


def test_places_that_are_looked_up_again_come_and_go(three: Scripted) -> None:
    three.live["c"] = False
    three.servers.lose(three.one("c"), TransportError("gone"))
    three.names = "bcd"
    three.servers.renew()
    assert "".join(server.member for server in three.servers.all) == "bcd"
    assert sorted(three.enter(2)) == ["b", "d"]


def test_many_threads_count_the_calls_in_flight_right(three: Scripted) -> None:
    def work() -> None:
        for _ in range(500):
            server = three.servers.enter()
            assert server is not None
            three.servers.leave(server)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [server.in_flight for server in three.servers.all] == [0, 0, 0]
    assert sum(server.answered for server in three.servers.all) == 2000
