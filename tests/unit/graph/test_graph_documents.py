"""InferenceGraphs, read and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from alipes.config.load import parse_flags
from alipes.errors import ConfigError
from alipes.graph.document import graph_document
from alipes.graph.reading import read_graph, read_router_argument
from alipes.graph.serving import with_graph
from alipes.graph.single_responses import single_responses

pytestmark = pytest.mark.extra("deploy")

ANIMALS = """
apiVersion: v1
kind: Namespace
---
apiVersion: serving.kserve.io/v1alpha1
kind: InferenceGraph
metadata: {name: dog-breeds}
spec:
  timeout: 30
  routerTimeouts: {serverRead: 5, serverIdle: 70, serviceClient: 7}
  nodes:
    root:
      routerType: Sequence
      steps:
      - {serviceName: cat-dog, name: first}
      - {nodeName: breeds, data: $request, condition: 'predictions.#(label=="dog")', dependency: Hard}
    breeds:
      routerType: Splitter
      steps:
      - {serviceUrl: 'http://a.default/v1/models/a:predict', weight: 20}
      - {serviceName: b, weight: 80, data: $response, mapPredictionsToInstances: true}
"""


def read(tmp_path: Path, text: str, name: str = "graph.yaml") -> Any:
    file = tmp_path / name
    file.write_text(text)
    return read_graph(file)


def test_a_graph_is_found_among_objects_and_written_for_the_data_plane(tmp_path: Path) -> None:
    graph = read(tmp_path, ANIMALS)
    document = graph_document(graph, ["X-Team"], "")
    assert (document["name"], document["timeout_s"], document["step_timeout_s"]) == ("dog-breeds", 30.0, 7.0)
    first, second = document["nodes"]["root"]["steps"]
    assert first["target"] == {"model": "cat-dog"}
    assert first["name"] == "first"
    assert (second["target"], second["response"], second["hard"]) == ({"node": "breeds"}, False, True)
    steps = document["nodes"]["breeds"]["steps"]
    assert [step["weight"] for step in steps] == [20, 80]
    assert steps[0]["target"] == {"url": "http://a.default/v1/models/a:predict"}
    assert steps[1]["response"] is steps[1]["map_predictions"] is True
    assert document["propagate"] == ["X-Team"]


def test_a_graph_may_be_json(tmp_path: Path) -> None:
    step = {"serviceName": "m"}
    spec = {"nodes": {"root": {"routerType": "Sequence", "steps": [step]}}}
    whole = {"kind": "InferenceGraph", "spec": spec}
    assert read(tmp_path, json.dumps(whole), "graph.json").name == "graph"
    router = read_router_argument(json.dumps(spec), "mine")
    assert (router.name, router.timeouts.request_s) == ("mine", 60)


def test_what_kserve_hands_its_router_is_not_judged_by_its_form() -> None:
    """Its controller adds a URL to a name, and Go reads what it does not know."""
    step = {"serviceName": "m", "serviceUrl": "http://m.default/", "newer": 1}
    spec = {"nodes": {"root": {"routerType": "Sequence", "steps": [step]}}, "resources": {}, "maxReplicas": 3}
    graph = read_router_argument(json.dumps(spec))
    assert graph_document(graph, [], "")["nodes"]["root"]["steps"][0]["target"] == {"url": "http://m.default/"}


M = "{serviceName: m}"
TWO = "root: {routerType: Sequence, steps: [{nodeName: a}]}, a: {routerType: Switch, steps: [{nodeName: b}]}"
MISTAKES = (
    (f"a: {{routerType: Sequence, steps: [{M}]}}", "spec.nodes: requests begin at the node 'root', which is missing"),
    (f"Root: {{routerType: Sequence, steps: [{M}]}}", "which is missing: is it 'Root'?"),
    ("root: {routerType: Sequence, steps: []}", "spec.nodes.root: it has no steps"),
    ("root: {routerType: Sequence}", "spec.nodes.root: 'steps' is missing"),
    (f"root: {{steps: [{M}]}}", "spec.nodes.root: 'routerType' is missing"),
    (f"root: {{routerType: Sequnce, steps: [{M}]}}", "'Sequnce' is unknown: did you mean Sequence?"),
    (f"root: {{routerType: Parallel, steps: [{M}]}}", "there are Sequence, Splitter, Ensemble, Switch"),
    ("root: {routerType: Sequence, steps: [{name: a}]}", "steps[0] ('a'): it calls nothing: say one of nodeName"),
    ("root: {routerType: Sequence, steps: [{serviceName: m, serviceUrl: 'http://m/'}]}", "say one of them"),
    ("root: {routerType: Sequence, steps: [{nodeName: next}]}", "there is no node 'next': there are root"),
    ("root: {routerType: Sequence, steps: [{servicename: m}]}", "did you mean 'serviceName'?"),
    ("root: {routerType: Sequence, steps: [{nodeName: root}]}", "requests would go round: root → root"),
    (
        f"{TWO}, b: {{routerType: Sequence, steps: [{{nodeName: a}}]}}",
        "spec.nodes.a: requests would go round: a → b → a",
    ),
    (
        "root: {routerType: Splitter, steps: [{serviceName: m, weight: 40}, {serviceName: n, weight: 50}]}",
        "the weights are 90 together, not 100",
    ),
    (
        "root: {routerType: Splitter, steps: [{serviceName: m, weight: 100}, {serviceName: n}]}",
        "spec.nodes.root.steps[1]: each step of a Splitter has a weight",
    ),
    (
        "root: {routerType: Splitter, steps: [{serviceName: m, weight: 150}, {serviceName: n, weight: -50}]}",
        "a weight is from 0 to 100, not 150",
    ),
    ("root: {routerType: Sequence, steps: [{serviceName: m, weight: '40'}]}", "expected a whole number, got '40'"),
    ("root: {routerType: Sequence, steps: [{serviceName: m, dependency: Firm}]}", "there are Soft, Hard"),
    (
        "root: {routerType: Ensemble, steps: [{serviceName: m, name: a}, {serviceName: n, name: a}]}",
        "two steps have the name 'a'",
    ),
    (
        "root: {routerType: Switch, steps: [{serviceName: m, condition: 'a.#(b==1'}]}",
        "is no path of gjson: ')' is missing at its end",
    ),
    ("root: {routerType: Sequence, steps: [{serviceUrl: m}]}", "'m' begins neither with http:// nor with https://"),
    ("root: {routerType: Sequence, steps: [{serviceUrl: 'http://a.{$b}/c'}]}", "names no host"),
    ("root: {routerType: Sequence, steps: [{serviceUrl: 'http://a:x/'}]}", "names no port"),
    ("root: {routerType: Sequence, steps: [{serviceUrl: 'https://a:b@c/'}]}", "names a user"),
    ("root: {routerType: Sequence, steps: {a: b}}", "spec.nodes.root.steps: expected a list"),
    ("root: 7", "spec.nodes.root: expected fields by their names, got 7"),
)


@pytest.mark.parametrize(("nodes", "text"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_in_a_graph_names_its_node_and_step(tmp_path: Path, nodes: str, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, f"kind: InferenceGraph\nmetadata: {{name: g}}\nspec: {{nodes: {{{nodes}}}}}\n")
    assert text in str(raised.value)
    assert str(tmp_path / "graph.yaml") in str(raised.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "found nothing and no InferenceGraph"),
        ("kind: InferenceService", "found InferenceService and no InferenceGraph"),
        ("kind: InferenceGraph\n---\nkind: InferenceGraph", "found 2 of them"),
        ("kind: [", "this is no YAML"),
        ("kind: InferenceGraph\napiVersion: serving.kserve.io/v1\n", "graphs are of serving.kserve.io/v1alpha1"),
        ("kind: InferenceGraph", "the graph 'graph' cannot be run"),
    ],
)
def test_a_file_without_a_graph_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text)
    assert reason in str(raised.value)


def test_a_file_that_cannot_be_read_as_a_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_graph(tmp_path / "absent.yaml")
    for content, reason in ((b"\xff", "not encoded in UTF-8"), (b" " * (1 << 20) + b" ", "more than 1048576 bytes")):
        (tmp_path / "graph.yaml").write_bytes(content)
        with pytest.raises(ConfigError, match=reason):
            read_graph(tmp_path / "graph.yaml")
    with pytest.raises(ConfigError, match="--graph-json is no JSON"):
        read_router_argument("{")


def test_what_kserve_takes_and_does_not_do_is_noticed(tmp_path: Path) -> None:
    nodes = (
        "root: {routerType: Sequence, steps: [{serviceName: m, condition: a}, {serviceName: n, data: $response.a}]}, "
        "s: {routerType: Switch, steps: [{serviceName: m, weight: 3}]}, "
        "e: {routerType: Ensemble, steps: [{serviceName: m, condition: a}]}"
    )
    notices = read(tmp_path, f"kind: InferenceGraph\nspec: {{nodes: {{{nodes}}}}}\n").notices
    for text in ("every request fails", "'$response.a'", "never chooses it", "looks at no weight", "no condition"):
        assert any(text in notice for notice in notices), (text, notices)


def test_flags_name_a_graph_and_its_time_outs_bound_connections(tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(ANIMALS)
    options = with_graph(parse_flags([f"--graph={file}", "--propagate-headers=X-A"], {"PROPAGATE_HEADERS": "X-B,X-C"}))
    assert options.graph.document is not None
    assert options.graph.document["propagate"] == ["X-A"]
    assert (options.connections.header_timeout_s, options.connections.idle_timeout_s) == (5, 70)
    options = with_graph(parse_flags([f"--graph={file}", "--idle-timeout-secs=9"], {"PROPAGATE_HEADERS": "X-B,X-C"}))
    assert options.graph.propagate == ("X-B", "X-C")
    assert options.connections.idle_timeout_s == 9
    with pytest.raises(ConfigError, match="--graph or --graph-json"):
        parse_flags([f"--graph={file}", "--graph-json={}"], {})
    with pytest.raises(ConfigError, match="model-repository"):
        parse_flags([], {})


def test_a_graph_says_where_it_needs_one_response(tmp_path: Path) -> None:
    """Of every model but those that end it; of a service elsewhere nobody knows."""
    nodes = (
        "root: {routerType: Sequence, steps: [{serviceName: a, name: first}, {nodeName: ways}]}, "
        "ways: {routerType: Switch, steps: [{serviceName: b, condition: x}, {nodeName: all, condition: y}]}, "
        "all: {routerType: Ensemble, steps: [{serviceUrl: 'http://c-predictor.ns'}, {nodeName: last}, "
        "{serviceUrl: 'http://d/any/path'}]}, "
        "last: {routerType: Sequence, steps: [{serviceUrl: 'http://e/v2/models/e/infer'}, {serviceName: b}]}"
    )
    graph = read(tmp_path, f"kind: InferenceGraph\nspec: {{nodes: {{{nodes}}}}}\n")
    assert single_responses(graph.nodes) == {
        "a": "spec.nodes.root.steps[0] ('first')",
        "c": "spec.nodes.all.steps[0]",
        "e": "spec.nodes.last.steps[0]",
        "b": "spec.nodes.last.steps[1]",
    }
    graph = read(
        tmp_path, f"kind: InferenceGraph\nspec: {{nodes: {{{nodes.replace('nodeName: last', 'serviceName: f')}}}}}\n"
    )
    assert set(single_responses(graph.nodes)) == {"a", "c", "f"}
