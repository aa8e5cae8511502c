"""What is said of a refusal of the API server."""

from __future__ import annotations

import pytest
from alipes.cloud.kubernetes.refusals import in_short


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('namespaces "a" not found', 'namespaces "a" not found'),
        (
            'admission webhook "inferenceservice.kserve-webhook-server.validator" denied the request: no\nserver',
            "KServe refuses it: no\nserver",
        ),
        (
            'admission webhook "validation.gatekeeper.sh" denied the request: [team] a label is missing',
            "the webhook validation.gatekeeper.sh refuses it: [team] a label is missing",
        ),
    ],
)
def test_a_webhook_s_refusal_is_its_reason(message: str, expected: str) -> None:
    assert in_short(message) == expected
