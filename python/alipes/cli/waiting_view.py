"""A server's report on a model's queue, as text for people."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from alipes.cli.amounts import count, span
from alipes.cli.events import events
from alipes.cli.tuning_view import tuned, tuning_changes
from alipes.cli.verdict import verdict

Document = Mapping[str, Any]

# What keeps the next batch, by the server's word for it.
_HOLDS: Final[Mapping[str, str]] = {
    "nothing_waits": "nothing waits",
    "first_batch": "the first batch waits until more requests wait (TRITONSERVER_DELAY_SCHEDULER)",
    "company": "the requests wait for company",
    "instances_busy": "every instance is busy",
    "no_slot": "every slot is another sequence's",
    "no_instance": "no instance is in service",
    "coming": "an instance is on its way to them",
}

# What requests are brought together in, by the server's word for the scheduling.
_KINDS: Final[Mapping[str, str]] = {
    "sequence_direct": "sequences with a slot of their own each, batches",
    "sequence_oldest": "sequences, the oldest first, batches",
}

# Why a batch was taken as it was, likewise.
_REASONS: Final[Mapping[str, str]] = {
    "alone": "requests of this model run alone",
    "preferred": "a preferred size was reached",
    "full": "the next request would not have fitted",
    "unlike": "the next request has other shapes or inputs",
    "urgent": "what waits behind them is less urgent, and more than a batch",
    "no_delay": "the model does not wait for company",
    "overdue": "the oldest had waited as long as it may",
    "draining": "no company will come: the version drains",
    "fused": "an ensemble took them through all of its steps at once",
}

_WORKER_HOLD: Final = "every worker holds as much as it may"


def view(document: Document) -> RenderableType:
    """All models that the server told about, one below the other."""
    parts: list[RenderableType] = []
    for model in document["models"]:
        parts += [*_model(model), Text()]
    return Group(*parts[:-1])


def _model(model: Document) -> Iterator[RenderableType]:
    ready = "" if model["ready"] else ", not ready"
    yield Text.assemble(
        (model["name"], "bold cyan"), f", version {model['version']}{ready}: {_rules(model['scheduling'])}"
    )
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(model):
        facts.add_row(Text(f"  {name}"), Text(value))
    yield facts
    tuning = model.get("tuning")
    if tuning and tuning["changes"]:
        yield tuning_changes(tuning["changes"])
    queue = model.get("queue")
    if queue and queue["decisions"]:
        yield _decisions(queue["decisions"])


def _rules(scheduling: Document) -> str:
    if scheduling["kind"] == "ensemble":
        return "an ensemble"
    if scheduling["kind"] == "graph":
        return "a graph"
    if scheduling["kind"] == "streaming":
        return "the state of each sequence is kept"
    rows = scheduling["max_batch_size"]
    if scheduling["kind"] == "direct":
        return "requests run alone"
    preferred = scheduling.get("preferred_batch_sizes")
    sizes = f", at once with {' or '.join(map(str, preferred))}" if preferred else ""
    delay = scheduling["max_queue_delay_us"]
    wait = f", waiting up to {span(delay)} for company" if delay else ""
    kind = _KINDS.get(scheduling["kind"], f"{scheduling['kind']} batches")
    return f"{kind} of up to {count(rows, 'row')}{sizes}{wait}"


def _facts(model: Document) -> Iterator[tuple[str, str]]:
    ensemble, queue, streaming = (model.get(part) for part in ("ensemble", "queue", "streaming"))
    if ensemble:
        held = ensemble["held_back"]
        back = f"; {count(held, 'call')} held back by max_inflight_requests" if held else ""
        yield "under way", count(ensemble["requests"], "request") + back
        yield "steps", ", ".join(ensemble["members"]) or "none is served"
    if streaming:
        yield "live", f"{count(streaming['sequences'], 'sequence')} of {streaming['max_sequences']}"
        yield "waiting", count(streaming["waiting"], "request") if streaming["waiting"] else "nothing"
    if queue:
        yield "verdict", verdict(model)
        if "tuning" in model:
            yield "tunes itself", tuned(model["tuning"])
        limits = model["scheduling"].get("limits")
        if limits:
            yield "limits", _limits(limits)
        workers = model.get("workers", [])
        yield "waiting", _waiting(queue)
        yield "next batch", _next(queue, bool(workers))
        if workers:
            yield "workers", ", ".join(map(_worker, workers))
        else:
            yield "instances", f"{queue['busy_instances']} of {queue['instances']} busy"
        if "execution_us" in queue:
            yield "an execution", f"up to {span(queue['execution_us'])}, nine times of ten"


def _limits(limits: Document) -> str:
    limits_text = []
    if limits["priority_levels"]:
        limits_text.append(count(limits["priority_levels"], "priority level"))
    if limits["timeout_us"]:
        fate = "stands behind the others" if limits["delayed"] else "is given back"
        limits_text.append(f"what has waited {span(limits['timeout_us'])} {fate}")
    if limits["max_queue_size"]:
        limits_text.append(f"no more than {limits['max_queue_size']} may wait")
    return ", ".join(limits_text) or "those that requests bring"


def _waiting(queue: Document) -> str:
    if not queue["waiting"]:
        return "nothing"
    text = count(queue["waiting"], "request")
    if queue["oldest"]:
        text += f", the first for {span(queue['oldest'][0]['waited_us'])}"
        levels = Counter(waiting["priority"] for waiting in queue["oldest"])
        if len(levels) > 1:
            by_priority = ", ".join(f"{priority} ({number})" for priority, number in sorted(levels.items()))
            text += f", at priorities {by_priority}"
    gone = sum(waiting["cancelled"] for waiting in queue["oldest"])
    return f"{text}; {gone} of the first {len(queue['oldest'])} have no caller any more" if gone else text


def _next(queue: Document, workers: bool) -> str:
    hold: str = queue["hold"]
    text = _HOLDS.get(hold, hold)
    if hold == "instances_busy" and workers:
        text = _WORKER_HOLD
    coming = queue.get("next")
    if coming is None:
        return text
    batch = count(coming["requests"], "request")
    if hold == "company":
        return f"{batch}; {text}, for {span(coming['due_in_us'])} at most"
    if hold == "coming":
        return f"{batch}; {text}"
    return f"{batch} ({_REASONS.get(coming['why'], coming['why'])}); {text}"


def _worker(worker: Document) -> str:
    state = f"{worker['requests']} in hand" if worker["up"] else "down"
    return f"{worker['instance']} ({state})"


def _decisions(decisions: list[Document]) -> Table:
    return events("decisions", _collapsed(decisions))


def _collapsed(decisions: list[Document]) -> Iterator[tuple[Document, str]]:
    """Each decision once, with how often it was taken in a row: the newest of them stands for all."""
    for _, alike in itertools.groupby(decisions, _kind):
        newest, *others = alike
        again = f" ({len(others) + 1} times in a row)" if others else ""
        yield newest, decided(newest) + again


def _kind(decision: Document) -> Document:
    """A decision without when it was taken and what was left: two that are alike are one line."""
    return {name: value for name, value in decision.items() if name not in ("ago_us", "left", "requests", "rows")}


def decided(decision: Document) -> str:
    """One decision as a sentence."""
    sentence = _SENTENCES.get(decision["decision"])
    return sentence(decision) if sentence else str(decision["decision"])


def _took(decision: Document) -> str:
    left = f", {decision['left']} left waiting" if decision["left"] else ""
    reason = _REASONS.get(decision["why"], decision["why"])
    what = f"{count(decision['requests'], 'request')}, {count(decision['rows'], 'row')}"
    return f"instance {decision['instance']} took {what}{left}: {reason}"


def _waits(decision: Document) -> str:
    return f"instance {decision['instance']} waits for company, {span(decision['at_most_us'])} at most"


def _requests(what: str) -> Callable[[Document], str]:
    return lambda decision: f"{count(decision['requests'], 'request')} {what}"


_SENTENCES: Final[Mapping[str, Callable[[Document], str]]] = {
    "took": _took,
    "waits": _waits,
    "expired": _requests("given back: they had waited too long"),
    "withdrew": _requests("withdrawn: their callers have gone"),
    "put_back": _requests("came back to the head, not executed"),
    "refused": _requests("turned away"),
    "stopped": lambda _: "no more requests are taken in: the version drains",
    "rearranged": lambda decision: f"{count(decision['instances'], 'instance')} in service from here on",
}
