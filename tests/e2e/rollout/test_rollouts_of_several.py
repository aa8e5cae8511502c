"""A version replaces another one at several real servers at once: one verdict, and no server is left behind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from alipes.client import AsyncClient, Client
from alipes.errors import InvalidArgument, TransportError
from alipes.rollout import Outcomes, Tolerance, judge
from support.command import alipes
from support.ports import unused_address
from support.rollouts import QUICK, WIDE, Requests, add_two_versions, rollout
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

EXPLICIT = ("--model-control-mode=explicit", "--load-model=*")
ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> list[ServerProcess]:
    """Three servers of the same models; version 2 is the same as version 1 or has other outputs."""
    repository = tmp_path_factory.mktemp("repository")
    for name, factor in (("merged", 2.0), ("same", 1.0), ("drifts", 2.0), ("unset", 1.0)):
        add_two_versions(repository, name, factor)
    return [serve_module(repository, *EXPLICIT) for _ in range(3)]


def address_of(*servers: ServerProcess) -> str:
    return ",".join(f"http://{server.http}" for server in servers)


def test_merged_outcomes_are_those_of_one_server_that_saw_all(trio: list[ServerProcess]) -> None:
    first, second, alone = trio
    half = {1: 50, 2: 50}
    with Client(address_of(first, second)) as pair, Client(address_of(alone)) as one:
        for client in (pair, one):
            client.set_traffic("merged", half, sticky_header="X-User")
        # The header decides the version, so it is the same at every server.
        for user in range(40):
            headers = {"X-User": f"user {user}"}
            for server in (trio[user % 2], alone):
                with Client(address_of(server), headers=headers) as caller:
                    for number in range(5):
                        caller.infer("merged", {"X": ROWS + user + number})
        merged, whole = pair.traffic_outcomes("merged"), one.traffic_outcomes("merged")
        counts = [server.traffic_outcomes("merged") for server in pair.servers().values()]
    assert sum(one["answered"] for count in counts for one in count.values()) == 200
    assert all(one["answered"] > 0 for count in counts for one in count.values())
    for version, outcomes in whole.items():
        for name in ("answered", "failed"):
            assert merged[version][name] == outcomes[name]
        assert sorted(merged[version]["samples"]["Y"]) == sorted(outcomes["samples"]["Y"])
        assert sum(count for _, count in merged[version]["latency_us"]) == outcomes["answered"]
    found = [judge(Outcomes.read(one[1]), Outcomes.read(one[2]), Tolerance(latency=1e6)) for one in (merged, whole)]
    assert found[0].verdict == found[1].verdict == "worse"
    about = ("errors", "output Y")
    merged_findings, whole_findings = ([one for one in each.findings if one.about in about] for each in found)
    assert merged_findings == whole_findings


@contextmanager
def asked_everywhere(servers: list[ServerProcess], model: str) -> Iterator[list[Requests]]:
    with Client(address_of(*servers)) as client:
        client.set_traffic(model, {1: 1})
    first, second = (Requests(server, model) for server in servers)
    with first, second:
        yield [first, second]


def weights(server: ServerProcess, model: str) -> dict[int, int]:
    with Client(address_of(server)) as client:
        return dict(client.traffic(model).weights)


@pytest.mark.proof
def test_a_good_version_gets_all_requests_everywhere(trio: list[ServerProcess], tmp_path: Path) -> None:
    pair, journal = trio[:2], tmp_path / "journal.jsonl"
    with asked_everywhere(pair, "same") as requests:
        code, end = rollout(address_of(*pair), "same", *QUICK, *WIDE, f"--journal={journal}")
    assert (code, end["promoted"], end["servers"]) == (0, True, address_of(*pair).split(",")), end
    assert [weights(server, "same") for server in pair] == [{}, {}]
    assert [one.failures for one in requests] == [[], []]
    assert json.loads(journal.read_text().splitlines()[0])["servers"] == end["servers"]


def test_a_worse_version_is_rolled_back_everywhere(trio: list[ServerProcess]) -> None:
    pair = trio[:2]
    with asked_everywhere(pair, "drifts") as requests:
        code, end = rollout(f"http://{pair[0].http}", "drifts", f"--url=http://{pair[1].http}", *QUICK, *WIDE)
    assert (code, end["promoted"], end["unset"]) == (1, False, {})
    assert str(end["reason"]).startswith("output Y: worse by "), end
    assert [weights(server, "drifts") for server in pair] == [{1: 1}, {1: 1}]
    assert [one.failures for one in requests] == [[], []]


def test_a_server_that_is_killed_costs_the_others_no_request(
    trio: list[ServerProcess], serve: Serve, tmp_path: Path
) -> None:
    repository, journal = tmp_path / "models", tmp_path / "journal.jsonl"
    add_two_versions(repository, "same", 1.0)
    victim, other = serve(repository), trio[0]
    with Client(address_of(other, victim)) as client, Requests(other, "same") as requests:
        client.set_traffic("same", {1: 1})
        waits = ("--steps=30", "--last-step-time=600", "--look-every=0.2", "--max-drift=0.01")
        flags = (*waits, *WIDE[:2], f"--journal={journal}")
        command = [sys.executable, "-m", "alipes", "rollout", "same", "--to=2", f"--url={address_of(other, victim)}"]
        process = subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True)
        # The weights of one server say nothing of the other's: the rollout notes the step once it has set both.
        until(lambda: journal.exists() and '"step"' in journal.read_text())
        victim.kill()
        out, _ = process.communicate(timeout=240)
    assert process.returncode == 1
    last = out.splitlines()[-1]
    assert last.startswith(
        "version 1 has all requests again at 1 of 2 servers: a server left 3 looks without an answer: "
    ), out
    assert last.endswith(
        f"once http://{victim.http} can be set: alipes models traffic same 1=1 --url=http://{victim.http}"
    )
    assert weights(other, "same") == {1: 1}
    assert requests.failures == []


def test_several_servers_are_divided_all_or_none(trio: list[ServerProcess], serve: Serve, tmp_path: Path) -> None:
    add_two_versions(tmp_path, "unset", 1.0)
    small = serve(tmp_path, *EXPLICIT)
    with Client(address_of(small)) as one:
        one.load("unset", config={"version_policy": {"specific": {"versions": [1]}}})
    with Client(address_of(*trio[:2], small)) as client:
        assert client.set_traffic("unset", {1: 1}).weights == {1: 1}
        with pytest.raises(InvalidArgument, match=r"divided at none of 3 servers, .*version 2 of 'unset' does not"):
            client.set_traffic("unset", {1: 9, 2: 1})
        assert [weights(server, "unset") for server in (*trio[:2], small)] == [{1: 1}] * 3
        small.kill()
        with pytest.raises(TransportError, match=f"divided at none of 3 servers, .*{small.http}"):
            client.set_traffic("unset", {1: 9, 2: 1})
        with pytest.raises(TransportError, match=f"were read at 2 of 3 servers: .*{small.http}"):
            client.traffic_outcomes("unset")
    assert [weights(server, "unset") for server in trio[:2]] == [{1: 1}] * 2


def test_an_asynchronous_client_adds_outcomes_up(trio: list[ServerProcess]) -> None:
    async def answered() -> int:
        async with AsyncClient(address_of(*trio)) as client:
            await client.set_traffic("unset", {1: 1})
            for server in client.servers().values():
                await server.infer("unset", {"X": ROWS})
            return int((await client.traffic_outcomes("unset"))[1]["answered"])

    assert asyncio.run(answered()) == 3


def test_a_rollout_does_not_begin_without_all_servers(trio: list[ServerProcess]) -> None:
    gone = unused_address()
    done = alipes("rollout", "unset", "--to=2", "--url", f"{address_of(trio[0])},http://{gone}")
    assert done.code == 1, done.err
    assert gone in done.message
    assert 2 not in weights(trio[0], "unset")


def test_what_serves_has_to_be_the_same_everywhere(trio: list[ServerProcess]) -> None:
    for server, serving in zip(trio[:2], ({1: 1}, {2: 1}), strict=True):
        with Client(address_of(server)) as client:
            client.set_traffic("unset", serving)
    done = alipes("rollout", "unset", "--to=2", "--url", address_of(*trio[:2]))
    assert done.code == 1
    assert "version 2 has them already" in done.message
