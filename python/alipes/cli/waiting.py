"""`alipes explain`: what waits for a running model, what keeps the next batch, and what was decided last."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

import typer
from rich.console import Console
from rich.live import Live

from alipes.cli.connection import ApiKey, Header, Url, http_url, one_address, read_headers
from alipes.cli.failures import GIVE_KEY, NOT_RUNNING, CommandFailed, perform
from alipes.cli.waiting_view import view

Document = dict[str, Any]

_MENDS: Final = {
    401: GIVE_KEY,
    403: "add what the server asks for with --header NAME:VALUE",
    404: "see with `alipes models list` which models are ready",
}
"""What to do about a refusal, by its status."""

_ELSEWHERE: Final = "say with --url where the server is"

# Longest wait for the server's word: it answers without looking at a model, so in no time.
_TIMEOUT_S: Final = 5.0

# Wider than any line of the report.
_UNFOLDED: Final = 200


class ExplainFailed(CommandFailed):
    """The server could not be asked, or said no; the text says what to do."""


def explain_model(  # noqa: PLR0913, PLR0917  # one parameter is one flag
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of the model.")],
    version: Annotated[str, typer.Option("--model-version", help="One version; the highest by default.")] = "",
    url: Url = None,
    header: Header = None,
    api_key: ApiKey = None,
    watch: Annotated[
        float | None, typer.Option(min=0.05, max=3600, metavar="SECONDS", help="Look so often, until Ctrl-C.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what the server says, as it is.")] = False,
) -> int:
    """Tell what waits for a model of a running server, and why."""
    console = Console()

    def action() -> int:
        headers = read_headers(header, api_key)
        place = _place(http_url(one_address(url, "each server has its own queues")), model, version)
        if watch is not None:
            _watch(lambda: ask(place, headers), watch, console)
        elif as_json:
            print(json.dumps(ask(place, headers), indent=2))
        else:
            _print(ask(place, headers), console)
        return 0

    return perform(action)


def ask(place: str, headers: Mapping[str, str]) -> Document:
    """What the server says.

    Raises:
        ExplainFailed: It cannot be reached, or answers with an error.
    """
    try:
        with urlopen(Request(place, headers=dict(headers)), timeout=_TIMEOUT_S) as answer:
            document = json.loads(answer.read())
    except HTTPError as error:
        mend = _MENDS.get(error.code, "see the log of the server for more")
        raise ExplainFailed(mend, _refusal(error)) from error
    except (OSError, URLError) as error:
        reason = getattr(error, "reason", error)
        raise ExplainFailed(NOT_RUNNING, f"no server answers at {place} ({reason})") from error
    except ValueError as error:
        raise ExplainFailed(_ELSEWHERE, f"what answers at {place} is not alipes") from error
    if not isinstance(document, dict) or "models" not in document:
        raise ExplainFailed(_ELSEWHERE, f"what answers at {place} is not alipes")
    return document


def _refusal(error: HTTPError) -> str:
    with error:
        body = error.read()
    try:
        message = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        message = error.reason
    return f"the server answers {error.code}: {message}"


def _place(url: str, model: str, version: str) -> str:
    named = f"/versions/{quote(version, safe='')}" if version else ""
    return f"{url}/v2/models/{quote(model, safe='')}{named}/explain"


def _print(document: Document, console: Console) -> None:
    if console.is_terminal:
        return console.print(view(document))
    # Another program that reads it wants lines as long as they are, and nothing behind their ends.
    text = io.StringIO()
    Console(file=text, width=_UNFOLDED).print(view(document))
    print("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def _watch(look: Callable[[], Document], every_s: float, console: Console) -> None:
    with Live(view(look()), console=console, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every_s)
                live.update(view(look()), refresh=True)
        except KeyboardInterrupt:
            return
