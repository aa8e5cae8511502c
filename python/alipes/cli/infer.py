"""`alipes infer` and `alipes ask`: ask a model, or a function that is served as one, from the shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from alipes.cli.certificates import with_certificate
from alipes.cli.connection import ApiKey, Header, Timeout, TlsRoots, Url, connect, read_headers
from alipes.cli.failures import perform
from alipes.errors import InferError

if TYPE_CHECKING:
    from alipes.cli.arguments import TypedRequest
    from alipes.client import Answer, Client
    from alipes.client.signature import Signature

__all__ = ["NUMBERS_FOLLOW", "ask", "infer"]

NUMBERS_FOLLOW: Final = {"ignore_unknown_options": True}
"""Settings of the commands: `-1` is a value and no option; see `check_options`."""

Version = Annotated[
    str, typer.Option("--model-version", show_default=False, help="Its version; the server chooses by default.")
]
Outputs = Annotated[
    list[str] | None, typer.Option("--output", metavar="NAME", help="Ask for this output alone; any number.")
]


@with_certificate
def infer(  # noqa: PLR0913, PLR0917  # one parameter is one option
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model.")],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT=VALUE",
            show_default=False,
            help="A number, JSON, text, @FILE (.npy, .json; for text any) or - for standard input.",
        ),
    ] = None,
    url: Url = None,
    version: Version = "",
    output: Outputs = None,
    timeout: Timeout = 60.0,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outputs as JSON, whole.")] = False,
) -> int:
    """Ask a model, and print its outputs.

    A model with one input needs no name: `alipes infer double 1 2 3`, `alipes infer digits @scan.npy`. A missing batch
    axis is added. `-` alone takes a V2 request body too. Of a decoupled model each response is printed as it comes; it
    is asked over gRPC: --url localhost:8001.
    """

    def action() -> int:
        from alipes.cli.answers import as_document, print_answer
        from alipes.cli.arguments import Reader, check_options

        words = inputs or []
        check_options("alipes infer", words, _options(context))
        with connect(url, read_headers(header, api_key), tls_roots, timeout) as client:
            signature = client.signature(model, version)
            typed = Reader(signature).request(words)
            for note in typed.notes:
                print(f"note: {note}", file=sys.stderr)
            datatypes = {name: spec.datatype for name, spec in signature.outputs.items()}
            for answer in _answers(client, model, version, typed, output):
                if as_json:
                    print(as_document(answer, model), flush=True)
                else:
                    print_answer(answer, datatypes)
                    sys.stdout.flush()
        return 0

    return perform(action)


@with_certificate
def ask(  # noqa: PLR0913, PLR0917  # one parameter is one option
    context: typer.Context,
    function: Annotated[str, typer.Argument(metavar="FUNCTION", help="Name that it is served by.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGUMENT",
            show_default=False,
            help="By position, NAME=VALUE, or one JSON object: a number, JSON, text, @FILE or -.",
        ),
    ] = None,
    url: Url = None,
    version: Version = "",
    timeout: Timeout = 60.0,
    header: Header = None,
    api_key: ApiKey = None,
    tls_roots: TlsRoots = None,
) -> int:
    """Call a function that is served as a model, and print its value alone.

    As `alipes infer`, but arguments go by position, a single value stays one, and what is printed is the value, as JSON
    or text: `area=$(alipes ask circle 2.5)`.
    """

    def action() -> int:
        from alipes.cli.arguments import Reader, check_options

        words = arguments or []
        check_options("alipes ask", words, _options(context))
        with connect(url, read_headers(header, api_key), tls_roots, timeout) as client:
            signature = client.signature(function, version)
            typed = Reader(signature).call(words)
            for answer in _answers(client, function, version, typed, None):
                print(_value(answer, typed, signature), flush=True)
        return 0

    return perform(action)


def _answers(
    client: Client, model: str, version: str, typed: TypedRequest, outputs: Sequence[str] | None
) -> Iterator[Answer]:
    """The answer of a model; of a decoupled one each response as it comes, for which the server has to speak gRPC."""
    from alipes.client import Answer

    options: Any = {"version": version, "request_id": typed.request_id, "parameters": typed.parameters}
    wanted = outputs or typed.outputs
    if not _is_decoupled(client, model, version):
        yield client.ask(model, typed.inputs, outputs=wanted, **options)
        return
    for response in client.stream(model, typed.inputs, outputs=wanted, **options):
        yield Answer(response, version, typed.request_id, {})


def _is_decoupled(client: Client, model: str, version: str) -> bool:
    """Whether a request may have any number of responses; not where a server tells no configurations."""
    try:
        config = client.config(model, version)
    except InferError:
        return False
    return bool(config.get("model_transaction_policy", {}).get("decoupled"))


def _value(answer: Answer, typed: TypedRequest, signature: Signature) -> str:
    """The only output, or all of them by name."""
    values = {name: _one(name, array, typed, signature) for name, array in answer.outputs.items()}
    value = next(iter(values.values())) if len(values) == 1 else values
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _one(name: str, array: Any, typed: TypedRequest, signature: Signature) -> Any:
    """An output in the form of the arguments: one value for single values, one row for rows."""
    from alipes.cli.answers import plain

    if array.size == 1 and typed.single == typed.inputs.keys():
        return plain(array.reshape(()))
    spec = signature.outputs.get(name)
    is_batch = spec is not None and spec.shape[:1] == (-1,) and len(array) == 1
    return plain(array[0] if is_batch and typed.bare == typed.inputs.keys() else array)


def _options(context: typer.Context) -> list[str]:
    return [name for parameter in context.command.params for name in parameter.opts if name.startswith("-")]
