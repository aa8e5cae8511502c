"""Calls that wait for an attached instance, which answers one after the other, are handed over together."""

from __future__ import annotations

import json
import threading
import urllib.request

from alipes._core import call_response
from alipes.attached import AttachedModel, InferenceRequest, InferenceResponse
from support.attached import LOCAL, Attachment
from support.waiting import TIMEOUT_S, until

CALLERS = 8


def test_quick_calls_are_claimed_together() -> None:
    sizes: set[int] = set()

    def execute(requests: list[InferenceRequest]) -> list[InferenceResponse]:
        sizes.add(len(requests))
        return [call_response(b"{}") for _ in requests]

    model = AttachedModel("echo", {"parameters": {"endpoint": {"string_value": json.dumps({})}}}, [execute])
    seen = threading.Event()
    # A worker with little memory gets one call at a time.
    with Attachment([model], worker_memory="full", **LOCAL) as attachment:

        def call() -> None:
            while not seen.is_set():
                request = urllib.request.Request(f"{attachment.url}/echo", b"{}", {"content-type": "application/json"})
                with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                    assert answer.read() == b"{}"

        threads = [threading.Thread(target=call) for _ in range(CALLERS)]
        for thread in threads:
            thread.start()
        try:
            # Which calls wait at the same moment is chance, and some do in the end.
            until(lambda: max(sizes, default=0) > 1)
        finally:
            seen.set()
            for thread in threads:
                thread.join()
