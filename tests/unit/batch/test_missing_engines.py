"""Servers on Ray and Dask say what to install where these are not."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from alipes.errors import Unsupported


@pytest.mark.skipif(find_spec("distributed") is not None, reason="Dask is installed")
def test_a_plugin_without_dask_says_what_to_install() -> None:
    from alipes.dask import ServerPlugin

    with pytest.raises(Unsupported, match=r"pip install 'alipes\[dask\]'"):
        ServerPlugin("models")


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_a_server_without_ray_says_what_to_install() -> None:
    from alipes.ray import Server, ingress

    with pytest.raises(Unsupported, match=r"pip install 'alipes\[ray\]'"):
        Server("models")
    with pytest.raises(Unsupported, match=r"pip install 'ray\[serve\]'"):
        ingress("models")
