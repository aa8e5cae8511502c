"""Groups of requests that need a header."""

from __future__ import annotations

import pytest
from alipes.config.listener_options import Restriction
from alipes.config.load import parse_flags
from alipes.config.restrictions import GROUPS
from alipes.errors import ConfigError


def test_each_value_names_groups_a_header_and_what_it_holds() -> None:
    options = parse_flags(
        [
            "models",
            "--http-restricted-api=model-repository,health:admin-key=secret=word",
            "--http-restricted-api=inference:infer-key==",
            "--grpc-restricted-protocol=statistics:key=value",
        ],
        {},
    )
    assert options.http_restricted == (
        Restriction(groups=("model-repository", "health"), header="admin-key", value="secret=word"),
        Restriction(groups=("inference",), header="infer-key", value="="),
    )
    assert options.grpc_restricted == (Restriction(groups=("statistics",), header="key", value="value"),)


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_may_be_restricted(group: str) -> None:
    restricted = parse_flags(["models", f"--grpc-restricted-protocol={group}:key=value"], {}).grpc_restricted
    assert restricted[0].groups == (group,)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--http-restricted-api=inferences:k=v"], "unknown restricted api 'inferences'; did you mean 'inference'?"),
        (["--grpc-restricted-protocol=health,:k=v"], "unknown restricted protocol ''"),
        (
            ["--http-restricted-api=health:a=b", "--http-restricted-api=trace,health:c=d"],
            "restricted api 'health' can not be specified in multiple config groups",
        ),
        (
            ["--http-restricted-api=model-control:a=b", "--http-restricted-api=model-repository:c=d"],
            "restricted api 'model-repository' can not be specified in multiple config groups",
        ),
        (["--grpc-restricted-protocol=:k=v"], "option format is '<config name>:<setting>=<value>'. Got :k=v"),
        (["--http-restricted-api=health"], "option format is '<config name>:<setting>=<value>'. Got health"),
        (["--http-restricted-api=health:key"], "option format is '<config name>:<setting>=<value>'. Got health:key"),
        (["--http-restricted-api=health:key="], "option format is '<config name>:<setting>=<value>'. Got health:key="),
        (["--http-restricted-api=health:no header=v"], "expected <api,...>:<key>=<value>"),
        (["--grpc-restricted-protocol=health:k=line\nbreak"], "expected <protocol,...>:<key>=<value>"),
    ],
)
def test_what_restricts_nothing_is_refused(flags: list[str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_flags(["models", *flags], {})
    assert text in str(caught.value)
