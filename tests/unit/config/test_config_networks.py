"""Addresses whose floods put nobody on probation."""

from __future__ import annotations

import pytest
from alipes.config.load import parse_flags
from alipes.errors import ConfigError


def trusted(*values: str) -> tuple[str, ...]:
    """What the data plane is given for these values of the flag."""
    flags = [f"--trusted-proxies={value}" for value in values]
    return parse_flags(["models", *flags], {}).connections.trusted_proxies


def test_networks_stand_in_one_value_or_in_several() -> None:
    assert trusted() == ()
    assert trusted("10.0.0.0/8", "192.168.1.7, ::1,10.0.0.0/8") == ("10.0.0.0/8", "192.168.1.7/32", "::1/128")


def test_networks_come_from_the_environment() -> None:
    options = parse_flags(["models"], {"ALIPES_TRUSTED_PROXIES": "10.0.0.0/8 2001:db8::/32"})
    assert options.connections.trusted_proxies == ("10.0.0.0/8", "2001:db8::/32")


@pytest.mark.parametrize("value", ["", "proxy.example", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8,"])
def test_what_is_no_network_is_refused_by_name(value: str) -> None:
    with pytest.raises(ConfigError, match="--trusted-proxies"):
        trusted(value)
