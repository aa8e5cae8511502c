"""`alipes graph` as a command line of `alipes serve`."""

from __future__ import annotations

import pytest
from alipes.cli import is_router, main
from alipes.cli.graph import serve_flags


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("graph.yaml", "--graph=graph.yaml"),
        ("graph.yaml models app.py --port 0", "--graph=graph.yaml models app.py --port 0"),
        ("--graph-json={} --inferencegraph-name g", "--http-port=8080 --graph-json={} --inferencegraph-name g"),
        ("--graph-json {} --http-port=0", "--graph-json {} --http-port=0"),
        (
            "--enable-tls --graph-json={}",
            "--http-port=8080 --http-use-ssl --http-server-cert=/etc/tls/private/tls.crt "
            "--http-server-key=/etc/tls/private/tls.key --graph-json={}",
        ),
    ],
)
def test_a_graph_is_served_by_flags_of_serve(words: str, flags: str) -> None:
    assert list(serve_flags(words.split())) == flags.split()


def test_the_routers_command_line_names_no_command() -> None:
    assert is_router(["--graph-json", "{}"])
    assert is_router(["--inferencegraph-name=g", "--graph-json={}"])
    assert not any(is_router(words) for words in ([], ["serve", "--graph-json={}"], ["--version"], ["graph", "a.yaml"]))


def test_help_is_printed_and_a_refusal_has_its_mend(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "--help"]) == 0
    assert "alipes graph GRAPH.yaml" in capsys.readouterr().out
    assert main(["graph"]) == 2
    capsys.readouterr()
    assert main(["graph", "--enable-auth", "--graph-json={}"]) == 2
    assert "leave out --enable-auth" in capsys.readouterr().err
