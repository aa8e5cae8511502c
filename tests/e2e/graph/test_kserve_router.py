"""KServe's own router beside ours, on the same graphs and the same services: equal statuses and bodies."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.graph_steps import Received, Scripted, Steps, node, post_graph
from support.kserve_router import Router
from support.kube import Missing
from support.network import own_network
from support.ports import free_ports
from support.server import ServerProcess

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

Serve = Callable[..., ServerProcess]
Compare = Callable[..., list[tuple[int, bytes]]]
DOG = {"predictions": [{"label": "dog", "score": [0.1, 0.9]}]}
PEOPLE = {
    "name": {"first": "Tom", "last": "Anderson"},
    "age": 37,
    "none": None,
    "a.b": 1,
    "children": ["Sara", "Alex", "Jack"],
    "yes": True,
    "no": False,
    "empty": [],
    "text": '{"in": 1}',
    "friends": [
        {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
        {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
        {"first": "Jane", "age": 47, "nets": ["ig", "tw"]},
    ],
}


@pytest.fixture
def network() -> Iterator[ExitStack]:
    """The network of a pod; what the stack holds ends in it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(own_network("10.9.8.7/32"))
        except PermissionError as reason:
            pytest.skip(str(reason))
        yield stack


@pytest.fixture
def steps(network: ExitStack) -> Steps:
    return network.enter_context(Steps())


def started(log: Path, spec: Mapping[str, Any], propagate: str) -> Router:
    try:
        return Router(log, spec, propagate)
    except Missing as reason:
        pytest.skip(str(reason))


@pytest.fixture
def compare(network: ExitStack, tmp_path: Path, serve: Serve) -> Compare:
    """Both routers of a graph, asked the same: their answers, after they were found to be equal."""

    def run(
        nodes: Mapping[str, Any],
        bodies: Sequence[bytes | Mapping[str, Any]],
        *,
        headers: Mapping[str, str] | None = None,
        propagate: str = "",
        **spec: Any,
    ) -> list[tuple[int, bytes]]:
        whole = {"nodes": nodes, **spec}
        environment = {"PROPAGATE_HEADERS": propagate} if propagate else {}
        ours = serve(f"--graph-json={json.dumps(whole)}", environment=environment)
        found = []
        with started(tmp_path / "router.log", whole, propagate) as router:
            for body in bodies:
                their = post_graph(router.address, body, "/", headers)
                our = post_graph(ours.http, body, "/", headers)
                assert our == their, body
                found.append((our[0], our[2]))
        return found

    return run


def test_sequences_answer_alike(steps: Steps, compare: Compare) -> None:
    first = steps.says("/first", 200, {"predictions": [1.0, 1e21, "<é>"], "more": 1})
    for_cat = {"serviceUrl": steps.says("/cat", 200, DOG), "condition": 'predictions.#(label=="cat")'}
    nodes = {
        "root": node(
            "Switch",
            *({"nodeName": name, "condition": name} for name in ("mapped", "plain", "unmet", "met", "status", "first")),
        ),
        "mapped": node(
            "Sequence",
            {"serviceUrl": first, "mapPredictionsToInstances": True},
            {"serviceUrl": steps.url(), "data": "$response", "mapPredictionsToInstances": True},
        ),
        "plain": node("Sequence", {"serviceUrl": first}, {"serviceUrl": steps.url(), "data": "$request"}),
        "unmet": node("Sequence", {"serviceUrl": steps.says("/dog", 203, DOG)}, for_cat),
        "met": node(
            "Sequence",
            {"serviceUrl": steps.url("/dog")},
            {"nodeName": "plain", "condition": 'predictions.#(label=="dog")', "data": "$response"},
        ),
        "status": node("Sequence", {"serviceUrl": steps.says("/made", 201, b"plain text")}),
        "first": node("Sequence", {"serviceUrl": first, "condition": "first"}),
    }
    bodies = [{name: 1, "predictions": [1]} for name in nodes if name != "root"]
    answers = compare(nodes, [*bodies, b"", b"{", b"[1]"])
    assert [status for status, _ in answers] == [200, 200, 200, 200, 201, 500, 404, 404, 404]
    assert answers[0][1] == '{"instances":[1,1e+21,"\\u003cé\\u003e"]}'.encode()


@pytest.mark.parametrize("dependency", ["Soft", "Hard"])
def test_failures_of_steps_answer_alike(steps: Steps, compare: Compare, dependency: str) -> None:
    (closed,) = free_ports(1)
    steps.scripts["/broken"] = lambda _: None
    failing = {"serviceUrl": steps.says("/fail", 503, {"z": 1.0, "a": "&"}), "dependency": dependency, "name": "fail"}
    good = {"serviceUrl": steps.says("/good", 200, {"b": 1e-7}), "name": "good"}
    nodes = {
        "sequence": node("Sequence", failing, {"serviceUrl": steps.url(), "data": "$response"}),
        "ensemble": node("Ensemble", failing, good),
        "splitter": node("Splitter", failing | {"weight": 100}, good | {"weight": 0}),
        "nested": node("Sequence", {"nodeName": "sequence", "dependency": dependency}, good),
        "refused": node("Sequence", {"serviceUrl": f"http://127.0.0.1:{closed}/m", "dependency": dependency}, good),
        "broken": node("Ensemble", {"serviceUrl": steps.url("/broken"), "dependency": dependency}),
        "array": node("Ensemble", {"serviceUrl": steps.says("/array", 200, [1])}),
        "words": node("Ensemble", {"serviceUrl": steps.says("/words", 200, b"no JSON")}),
        "unmatched": node("Switch", {"serviceUrl": steps.url(), "condition": "nothing"}),
        "deep": node("Ensemble", {"nodeName": "unmatched"}),
    }
    root = node("Switch", *({"nodeName": name, "condition": name} for name in nodes))
    answers = compare({"root": root, **nodes}, [{name: 1} for name in nodes])
    assert answers[0][0] == (503 if dependency == "Hard" else 200)


def test_splitters_divide_alike(steps: Steps, compare: Compare) -> None:
    targets = [{"serviceUrl": steps.says(f"/{weight}", 200, b"same"), "weight": weight} for weight in (30, 70)]
    compare({"root": node("Splitter", *targets)}, [b"{}"] * 200)
    # Of 400, by both.
    assert abs(len(steps.bodies("/30")) - 120) <= 55


def test_headers_go_on_alike(steps: Steps, compare: Compare) -> None:
    def shown(received: Received) -> Scripted:
        names = ("authorization", "test-header-1", "x-team", "x-unseen", "content-type", "accept")
        return 200, json.dumps({name: received.headers.get(name) for name in names}).encode()

    steps.scripts["/shown"] = shown
    headers = {"Authorization": "Bearer x", "Test-Header-1": "a", "X-Team": "b", "X-Unseen": "c", "Accept": "text/x"}
    nodes = {"root": node("Sequence", {"serviceUrl": steps.url("/shown")})}
    ((_, body),) = compare(nodes, [b"{}"], headers=headers, propagate="Test-Header-*,Auth*,^X-T")
    seen = json.loads(body)
    assert (seen["authorization"], seen["x-team"], seen["x-unseen"]) == ("Bearer x", "b", None)


CONDITIONS = [
    *("name", "name.last", "age", "none", "children.#", "children.1", "child*.2", "c?ildren.0", r"a\.b", "empty", "*"),
    *(
        "name.*st",
        "friends.#",
        "friends.#.first",
        "friends.#.nothing",
        "friends.1.nets.0",
        "children.3",
        "x",
        "x|y",
        "a.b",
    ),
    *('friends.#(last=="Murphy").first', "friends.#(age>45)#.last", 'friends.#(first%"D*")', "friends.#(age==99)#"),
    *('friends.#(nets.#(=="fb"))#.first', 'children.#(!="Alex")', 'friends.#[first="Jane"]', "friends.#(last==~null)"),
    *("friends.#(age > 50 )", "friends.#(last)", 'friends.#(first=="Jane").last', "age.#(>1)", "friends.#(age<~true)"),
    *(
        "@this",
        "children|@reverse|0",
        "children.@reverse.3",
        "name.@keys.1",
        "[@this].#(age==37)",
        "[nothing]",
        "[nothing].0",
    ),
    *("{name.first}.first", "{ .input.userId == 1 }", "!true", "nothing|!true", "nothing|[x]", "nothing|@this"),
    *("friends.@join.last", "text.@fromstr.in", "@dig:first|0", "@dig:nothing|0", "friends|@flatten|0", "name.@tostr"),
    *(
        "children.#|@this",
        "friends.#.nets.0",
        "friends.#.nets.#",
        "friends.#.nets|1.2",
        "friends.#(age>1)#|1",
        "..0.age",
    ),
    *("friends.@group", "name|@values|1", "friends|0|nets|2", "friends.0.nets.@reverse.#", '@pretty:{"a":1}.age', "no"),
    *("friends.#(age>1).nets.#(=tw)", "friends.#(yes)", "yes.no", "children.#(>Jac)", "children.#(<=Alex)", "#", "0"),
]


def test_conditions_hold_alike(steps: Steps, compare: Compare) -> None:
    """Each of many in a node of its own, all of them asked at once."""
    met = steps.says("/met", 200, {"met": 1})
    nodes = {
        f"c{number}": node("Sequence", {"serviceUrl": steps.url()}, {"serviceUrl": met, "condition": condition})
        for number, condition in enumerate(CONDITIONS)
    }
    root = node("Ensemble", *({"name": name, "nodeName": name} for name in nodes))
    bodies = [PEOPLE, DOG, {}, {"": {"": 1}}, {"a": {"b": [[1], {"c": [2, [3]]}]}, "name": [{"last": 1}, {"first": 0}]}]
    ((_, first), *_) = compare({"root": root, **nodes}, bodies)
    held = sum(answer == {"met": 1} for answer in json.loads(first).values())
    assert 30 < held < len(CONDITIONS)


def some_json(chance: random.Random, depth: int = 0) -> str:
    """Text that is JSON, or nearly."""
    kinds = ["number", "text", "word", "wrong"] + (["object", "array"] * 2 if depth < 4 else [])
    inner = [some_json(chance, depth + 1) for _ in range(chance.randrange(4) if depth < 4 else 0)]
    kind = chance.choice(kinds if chance.random() > 0.03 else ["wrong"])
    match kind:
        case "object":
            keys = [chance.choice(["a", "b", "B", "é", "<", "\\u00fc", "predictions", "Instances"]) for _ in inner]
            return "{" + ",".join(f' "{key}" :{value}' for key, value in zip(keys, inner, strict=True)) + "}"
        case "array":
            return "[" + ", ".join(inner) + "]"
        case "number":
            digits = chance.choice(
                ["0", "-0", "1.0", "1e3", "-2.5E-7", "123456789012345678901234", "1e21", "0.1", "1e400"]
            )
            return digits if chance.random() > 0.2 or digits != "1e400" else "5e-324"
        case "text":
            return (
                '"'
                + chance.choice(["a", "<&>", "\\n\\u2028", "\\ud83d\\ude00", "\\ud83d", "é", "\\/", "\\u0001"])
                + '"'
            )
        case "word":
            text = chance.choice(["true", "false", "null"])
            return text
        case _:
            text = chance.choice(["tru", "nul", "01", "1.", '"', "'", "[1,]", "{1}", "", *string.punctuation, '"\\x"'])
            return text


def test_json_is_read_and_written_alike(steps: Steps, compare: Compare) -> None:
    """Answers of a hundred kinds, some of which are none, in an ensemble, and as predictions."""
    chance = random.Random(20)
    texts = [f'{{"a": {some_json(chance)}}}' for _ in range(150)] + [some_json(chance) for _ in range(50)]
    merged = node("Ensemble", {"serviceUrl": steps.url()})
    mapped = node("Sequence", {"serviceUrl": steps.url(), "mapPredictionsToInstances": True})
    for nodes in ({"root": merged}, {"root": mapped}):
        bodies = [text.encode() for text in texts]
        bodies += [b'{"predictions": %s}' % some_json(chance).encode() for _ in range(50)]
        bodies += [b'{"a": "\xff"}', b'{"Predictions": [1], "instances": 7}', b'{"predictions": null}']
        answers = compare(nodes, bodies)
        assert {200, 500} >= {status for status, _ in answers}
