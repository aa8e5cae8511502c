"""Registries of images: manifests, and who asks."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from pathlib import Path

import pytest
from alipes.errors import RepositoryError
from alipes.repository.storage.oci import OciSource, layers_of
from support.pushed_files import layer
from support.scripted_registry import Scripted, scripted_registry

NEVER = threading.Event()
TAR = "application/vnd.oci.image.layer.v1.tar+gzip"


def row(kind: str = TAR, title: str = "", digest: str = f"sha256:{'0' * 64}", size: int = 3) -> dict[str, object]:
    more = {"annotations": {"org.opencontainers.image.title": title}} if title else {}
    return {"mediaType": kind, "digest": digest, "size": size, **more}


@pytest.mark.parametrize("login", ["", "Basic", "Bearer"])
def test_a_registry_that_wants_a_login_gets_it(login: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    content = layer({"models/m/model.onnx": b"model"})
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    manifest = json.dumps({"layers": [row(digest=digest, size=len(content))]}).encode()
    with scripted_registry(Scripted(login=login)) as script:
        script.blobs[digest] = content
        script.manifests["v1"] = manifest
        auth = base64.b64encode(b"alice:secret").decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {script.address: {"auth": auth}}}))
        address = f"oci://{script.address}/team/m:v1"
        folder = OciSource(address, {"DOCKER_CONFIG": str(tmp_path)}).fetch(NEVER)
        assert (folder / "m" / "model.onnx").read_bytes() == b"model"
        if login == "Basic":
            with pytest.raises(RepositoryError, match=r"wants to know who asks: log in there"):
                OciSource(address, {}).fetch(NEVER)


def test_an_index_leads_to_the_image_of_linux_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    manifest = json.dumps({"layers": []}).encode()
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    other = {"digest": f"sha256:{'1' * 64}", "platform": {"os": "windows"}}
    with scripted_registry(Scripted()) as script:
        script.manifests[digest] = manifest
        for name, found in (("good", digest), ("evil", "../../../x")):
            index = {"manifests": [other, {"digest": found, "platform": {"os": "linux"}}]}
            script.manifests[name] = json.dumps(index).encode()
        assert OciSource(f"oci://{script.address}/team/m:good").fetch(NEVER).is_dir()
        with pytest.raises(RepositoryError, match=r"names an image '\.\./\.\./\.\./x'"):
            OciSource(f"oci://{script.address}/team/m:evil").fetch(NEVER)


def test_layers_that_are_no_files_are_passed_over() -> None:
    found = layers_of({"layers": [row(), row("application/vnd.in-toto+json"), row("text/plain", "a/b")]})
    assert [one.title for one in found] == ["", "a/b"]


@pytest.mark.parametrize(
    ("layers", "what"),
    [
        ([row("application/vnd.oci.image.layer.v1.tar+zstd")], "build the image with gzip"),
        ([row(digest="md5:0")], "cannot be checked"),
        ([row(size=-1)], "cannot be checked"),
        ([row(title="../a")], "leads out of its folder"),
        ([row(title="/a")], "leads out of its folder"),
        ([{}], "no list of layers"),
        (None, "no list of layers"),
        ([row()] * 1001, "more than 1000 layers"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused(layers: object, what: str) -> None:
    with pytest.raises(RepositoryError, match=what):
        layers_of({"layers": layers})
