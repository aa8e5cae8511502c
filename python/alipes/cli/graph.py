"""`alipes graph`: a server that answers the requests of an InferenceGraph, and KServe's router's command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from alipes.cli.mistakes import USAGE_ERROR, show_mistake

__all__ = ["serve_flags", "serve_graph"]

_HELP: Final = """Usage: alipes graph GRAPH.yaml [REPOSITORY...] [FLAGS]

Answers the requests of an InferenceGraph of KServe. Steps whose models are in a
repository run in this server; all others are called over HTTP.

  alipes graph graph.yaml models        steps by serviceName are models of the folder
  alipes graph graph.yaml               every step has a serviceUrl
  alipes graph --graph-json '{...}'     what KServe hands its router, on port 8080

Flags are those of `alipes serve`, which --help-all lists; of a graph:

  --propagate-headers PATTERN   headers that steps see; may be given several times
  --graph-root-cert FILE        roots that certificates of steps lead to
  --inferencegraph-name NAME    name of the graph of --graph-json
  --enable-tls                  encrypt, with /etc/tls/private/tls.crt and tls.key
"""

_ROUTER_PORT: Final = "--http-port=8080"
"""Where KServe's router listens, and its probe looks."""

_CERTIFICATES: Final = "/etc/tls/private"
"""Where OpenShift's KServe puts the certificate of a router."""


def serve_graph(arguments: Sequence[str]) -> int:
    """Serves a graph until a signal ends it.

    Args:
        arguments: A file, repositories and flags, or the arguments of KServe's router.

    Returns:
        0 after a clean drain, 1 after an error, 2 for a wrong command line; standard error has the mend.
    """
    words = set(takewhile(lambda word: word != "--", arguments))
    if words & {"-h", "--help"} or not arguments:
        print(_HELP, end="")
        return 0 if arguments else USAGE_ERROR
    if "--enable-auth" in words:
        show_mistake(
            "leave out --enable-auth, and have clients show a key: --api-key\n"
            "this router asks no API server about tokens"
        )
        return USAGE_ERROR
    from alipes.cli.serve import serve

    return serve(list(serve_flags(arguments)))


def serve_flags(arguments: Sequence[str]) -> Iterator[str]:
    """The command line of `alipes serve` that does the same."""
    names = {word.partition("=")[0] for word in arguments}
    words = list(arguments)
    if not words[0].startswith("-"):
        yield f"--graph={words.pop(0)}"
    if "--graph-json" in names and not names & {"--port", "--http-port", "--help-all"}:
        yield _ROUTER_PORT
    for word in words:
        if word == "--enable-tls":
            yield "--http-use-ssl"
            yield f"--http-server-cert={_CERTIFICATES}/tls.crt"
            yield f"--http-server-key={_CERTIFICATES}/tls.key"
        else:
            yield word
