"""A plan does each unit once, whatever the files, servers and clients."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from alipes.batch.plan import FORMAT, Overlap, Plan, Unit, cut_pieces, make_shards, read_plan, write_plan
from alipes.batch.stream_planning import stretches
from alipes.errors import ConfigError
from hypothesis import given, settings
from hypothesis import strategies as st


def plan_of(units: int, servers: int = 2, clients: int = 3) -> Plan:
    files = [(f"{number}.npy", 10, number) for number in range(units)]
    pieces = cut_pieces([10] * units, servers * clients, 1000)
    return Plan(
        FORMAT, "1", "double", "", "npz", "", files, [Unit(n, 0, -1) for n in range(units)], pieces, servers, clients
    )


@settings(max_examples=200, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 500), max_size=300),
    servers=st.integers(1, 5),
    clients=st.integers(1, 5),
    most_bytes=st.integers(1, 1000),
)
def test_each_unit_is_in_one_piece_of_one_shard(sizes: list[int], servers: int, clients: int, most_bytes: int) -> None:
    edges = cut_pieces(sizes, servers * clients, most_bytes)
    pieces = list(pairwise(edges))
    assert [unit for first, stop in pieces for unit in range(first, stop)] == list(range(len(sizes)))
    assert all(first < stop for first, stop in pieces)
    assert all(stop - first == 1 or sum(sizes[first:stop]) <= most_bytes for first, stop in pieces)
    shards = make_shards(len(pieces), servers, clients)
    assert [piece for shard in shards for piece in range(shard.first, shard.stop)] == list(range(len(pieces)))
    assert {shard.number for shard in shards} == set(range(servers * clients))
    per_server = [[shard.client for shard in shards if shard.server == server] for server in range(servers)]
    assert per_server == [list(range(clients))] * servers
    counts = [shard.stop - shard.first for shard in shards]
    assert max(counts) - min(counts) <= 1


@settings(max_examples=50, deadline=None)
@given(units=st.integers(1, 2000), shards=st.integers(1, 40))
def test_clients_have_several_pieces_where_there_are_units_enough(units: int, shards: int) -> None:
    pieces = len(cut_pieces([1] * units, shards, 1 << 20)) - 1
    assert pieces >= min(units, 8 * shards)


def test_a_plan_is_read_as_it_was_written() -> None:
    plan = plan_of(100)
    assert read_plan(write_plan(plan), "plan.json") == plan
    assert plan.digest() == plan_of(100).digest() != plan_of(101).digest()


def test_other_servers_and_clients_do_the_same_work() -> None:
    assert plan_of(100, 1, 1).work_digest() == plan_of(100, 4, 4).work_digest()
    assert plan_of(100, 1, 1).digest() != plan_of(100, 4, 4).digest()


def test_a_changed_plan_is_refused() -> None:
    document = json.loads(write_plan(plan_of(3)))
    document["plan"]["model"] = "triple"
    with pytest.raises(ConfigError, match="was changed since it was written"):
        read_plan(json.dumps(document).encode(), "plan.json")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"plan": 3}'])
def test_what_is_no_plan_is_refused(content: bytes) -> None:
    with pytest.raises(ConfigError, match="is no plan of a batch run"):
        read_plan(content, Path("plan.json"))


def test_a_plan_by_another_version_is_named_with_that_version() -> None:
    document = json.loads(write_plan(plan_of(3)))
    document["plan"] |= {"format": FORMAT + 1, "made_by": "7.8.9", "units": "otherwise"}
    with pytest.raises(
        ConfigError, match=r"format 2 of plans, made by alipes 7\.8\.9, and this version reads format 1"
    ):
        read_plan(json.dumps(document).encode(), "plan.json")


@settings(max_examples=100, deadline=None)
@given(
    counts=st.lists(st.integers(0, 500), min_size=1, max_size=20),
    overlap=st.integers(0, 50),
    servers=st.integers(1, 5),
    clients=st.integers(1, 5),
    most=st.integers(1, 300),
)
def test_sequences_of_a_run_differ_on_each_of_its_servers(
    counts: list[int], overlap: int, servers: int, clients: int, most: int
) -> None:
    plan = stream_plan_of(counts, overlap, servers, clients, most)
    shards = plan.shards()
    assert [update for _, unit in all_units(plan) for update in updates_of(unit)] == [
        (file, update) for file, count in enumerate(counts) for update in range(count)
    ]
    per_server: dict[int, list[int]] = {server: [] for server in range(servers)}
    for shard in shards:
        per_server[shard.server] += [plan.sequence(piece) for piece in range(shard.first, shard.stop)]
    assert [sum(shard.server == server for shard in shards) for server in range(servers)] == [clients] * servers
    numbers = [number for of_server in per_server.values() for number in of_server]
    assert len(set(numbers)) == len(numbers) == plan.piece_count, "also where a client does pieces of another server"
    assert all(0 < number < 2**31 for number in numbers)


def stream_plan_of(counts: list[int], overlap: int, servers: int, clients: int, most: int) -> Plan:
    files = [(f"{number}.npy", 10, number) for number in range(len(counts))]
    total = sum(counts)
    units = [
        Unit(number, start, stop)
        for number, count in enumerate(counts)
        for start, stop in stretches(count, overlap, total, servers * clients, most)
    ]
    pieces = list(range(len(units) + 1))
    cut = Overlap(1, overlap, 1, ())
    return Plan(FORMAT, "1", "chain", "", "npz", "", files, units, pieces, servers, clients, cut)


def all_units(plan: Plan) -> list[tuple[int, Unit]]:
    return [one for piece in range(plan.piece_count) for one in plan.units_of(piece)]


def updates_of(unit: Unit) -> list[tuple[int, int]]:
    return [(unit.file, update) for update in range(unit.start, unit.stop)]


def test_sequences_are_numbered_below_what_every_model_holds() -> None:
    for many in range(20):
        plan = stream_plan_of([0] * (2000 + many), 0, 1, 1, 1)
        assert 0 < plan.sequence(0) < plan.sequence(plan.piece_count - 1) < 2**31
