"""A store of any form as the models of a repository."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alipes.config.pbtxt import read_config
from alipes.config.store_schemes import is_fetched, stores_of
from alipes.errors import RepositoryError
from alipes.repository import model_store
from alipes.repository.model_store import ModelStore
from alipes.repository.repository import Repository
from alipes.repository.storage.bucket import blob_address, bucket_options
from alipes.repository.stores import opened_stores


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def looks(folder: Path) -> list[tuple[str, int, int]]:
    """Everything below a folder, with its time and mode."""
    return sorted((str(one), one.lstat().st_mtime_ns, one.lstat().st_mode) for one in (folder, *folder.rglob("*")))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ModelStore]:
    with_name = ModelStore(tmp_path / "store", "iris")
    yield with_name
    with_name.close()


def test_a_bare_model_is_arranged_by_links_and_the_store_is_left_alone(store: ModelStore) -> None:
    file = write(store.path / "net.onnx", "bytes")
    before = looks(store.path)
    store.refresh()
    assert store.names() == ["iris"]
    folder = store.folder_of("iris")
    assert folder is not None
    config = read_config(folder)
    assert config is not None and (config.name, config.backend) == ("iris", "onnxruntime")
    assert (folder / "1" / config.default_model_filename).samefile(file)
    store.close()
    assert not folder.exists() and looks(store.path) == before


def test_a_file_of_the_usual_name_needs_no_configuration(store: ModelStore) -> None:
    write(store.path / "model.onnx")
    store.refresh()
    folder = store.folder_of("iris")
    assert folder is not None and [path.name for path in folder.iterdir()] == ["1"]


def test_a_configuration_gets_the_name_of_the_model(store: ModelStore) -> None:
    write(store.path / "config.pbtxt", 'name: "theirs"\nmax_batch_size: 4\n')
    write(store.path / "labels.txt", "one")
    write(store.path / "1" / "model.onnx")
    store.refresh()
    folder = store.folder_of("iris")
    assert folder is not None
    config = read_config(folder)
    assert config is not None and (config.name, config.max_batch_size) == ("iris", 4)
    assert (folder / "labels.txt").read_text() == "one" and (folder / "1" / "model.onnx").exists()


def test_without_a_name_the_configuration_or_the_folder_has_it(tmp_path: Path) -> None:
    write(tmp_path / "plain" / "model.onnx")
    write(tmp_path / "named" / "1" / "model.onnx")
    write(tmp_path / "named" / "config.pbtxt", 'name: "theirs"')
    names = []
    for path in ("plain", "named", "plain/model.onnx"):
        store = ModelStore(tmp_path / path)
        store.refresh()
        names += store.names()
        store.close()
    assert names == ["plain", "theirs", "plain"]


def test_a_model_in_tritons_layout_under_its_name_stays_where_it_is(tmp_path: Path) -> None:
    write(tmp_path / "m" / "1" / "model.onnx")
    store = ModelStore(tmp_path)
    store.refresh()
    assert store.folder_of("m") == tmp_path / "m"


def test_changes_of_the_store_are_followed(store: ModelStore) -> None:
    write(store.path / "a.onnx")
    store.refresh()
    folder = store.folder_of("iris")
    assert folder is not None
    (store.path / "a.onnx").unlink()
    write(store.path / "b.onnx")
    store.refresh()
    config = read_config(folder)
    assert config is not None and config.default_model_filename == "b.onnx"
    write(store.path / "config.pbtxt", "max_batch_size: 2\n")
    store.refresh()
    config = read_config(folder)
    assert config is not None and (config.max_batch_size, config.default_model_filename) == (2, "b.onnx")


def test_models_of_an_agent_are_found_one_by_one_and_go_with_their_files(tmp_path: Path) -> None:
    store = ModelStore(tmp_path)
    repository = Repository([], need="none", stores=[store])
    assert repository.read().names == ()
    file = write(tmp_path / "a" / "model.onnx")
    write(tmp_path / "a" / "SUCCESS.0a1b")
    write(tmp_path / "b" / "notes.csv")
    [found] = repository.find("a")
    assert (found.name, (found.path / "1" / "model.onnx").samefile(file)) == ("a", True)
    with pytest.raises(RepositoryError, match=r"holds notes\.csv; expected"):
        repository.find("b")
    assert repository.read().names == ("a",)
    file.unlink()
    with pytest.raises(RepositoryError, match="a' is empty; expected"):
        repository.find("a")
    assert repository.read().names == ()
    with pytest.raises(RepositoryError, match="model not found in any model repository"):
        repository.find("c")
    repository.close()


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ([], "is empty; expected a model's file"),
        (["notes.csv", "more.csv"], r"holds no model that can be served: .* holds more\.csv, notes\.csv; expec"),
        (["sub/notes.csv"], r"sub' holds notes\.csv; expected"),
        (["a.onnx", "b.onnx"], "several models"),
    ],
)
def test_a_store_without_a_model_says_what_was_found(tmp_path: Path, files: list[str], what: str) -> None:
    store = ModelStore(tmp_path / "store")
    store.path.mkdir()
    for name in files:
        write(store.path / name)
    with pytest.raises(RepositoryError, match=what):
        Repository([], stores=[store])


def test_a_folder_that_is_no_model_is_named_beside_the_others(tmp_path: Path) -> None:
    write(tmp_path / "a" / "model.onnx")
    write(tmp_path / "docs" / "index.html")
    repository = Repository([], stores=[ModelStore(tmp_path)])
    assert repository.read().names == ("a",)
    [advice] = repository.advice()
    assert "folder 'docs'" in advice and "holds index.html" in advice
    repository.close()


def test_a_link_of_a_config_map_is_followed(store: ModelStore) -> None:
    write(store.path / "..2026_01" / "model.onnx", "one")
    (store.path / "..data").symlink_to("..2026_01")
    (store.path / "model.onnx").symlink_to("..data/model.onnx")
    store.refresh()
    folder = store.folder_of("iris")
    assert folder is not None and (folder / "1" / "model.onnx").read_text() == "one"


def test_addresses_of_this_machine_are_folders(tmp_path: Path) -> None:
    write(tmp_path / "model.onnx")
    assert [store.path for store in opened_stores([f"file://{tmp_path}"], "iris")] == [tmp_path]
    with pytest.raises(RepositoryError, match="mount the volume of claim 'data' at /mnt/pvc/data"):
        opened_stores(["pvc://data/models"], "")


@pytest.mark.parametrize(
    ("address", "mend"),
    [
        ("hdfs://host/m", "copy it to this machine with `hdfs dfs -get`"),
        ("webhdfs://host/m", "copy it to this machine with `hdfs dfs -get`"),
        ("git://host/m", "clone it"),
        ("https://host/m.git", "clone it"),
        ("https://acc.file.core.windows.net/share/m", "mount the share, and serve that folder: azfileshare is not"),
        ("modelscope://owner/m", "download it with `modelscope download"),
        ("ftp://host/m", "ftp:// is unknown: a store is a folder, file://"),
        ("https://host/folder/", "names no file: expected one of a model"),
    ],
)
def test_an_address_that_is_not_read_is_refused_by_its_scheme(address: str, mend: str) -> None:
    with pytest.raises(RepositoryError, match=re.escape(mend)):
        opened_stores([address], "")


def test_repositories_that_are_fetched_as_a_whole_are_stores() -> None:
    paths = ["models", "s3://b/m", "https://h/m.zip", "hf://o/m", "oci://h/m", "pvc://c/m", "git://h/m"]
    assert stores_of(paths, ["store", "https://h/m.zip"]) == ("store", *paths[2:])
    assert [is_fetched(path) for path in paths[:3]] == [False, False, True]


def test_keys_are_read_where_kserve_puts_them() -> None:
    secret = {"type": "s3", "endpoint_url": "http://host:9000", "access_key_id": "k", "secret_access_key": "s"}
    environ = {"STORAGE_CONFIG": json.dumps(secret), "STORAGE_OVERRIDE_CONFIG": '{"region": "r", "verify_ssl": "0"}'}
    keys = {"endpoint_url": "http://host:9000", "key": "k", "secret": "s"}
    assert bucket_options("s3://b", "", environ) == keys | {"client_kwargs": {"region_name": "r", "verify": False}}
    plain = {"awsAnonymousCredential": "true", "S3_ENDPOINT": "host:9000", "S3_USE_HTTPS": "0"}
    assert bucket_options("s3://b", "", plain) == {"anon": True, "endpoint_url": "http://host:9000"}
    virtual = {"S3_USER_VIRTUAL_BUCKET": "true", "S3_USE_ACCELERATE": "true", "S3_VERIFY_SSL": "0"}
    assert bucket_options("s3://b", "", virtual) == {
        "client_kwargs": {"verify": False},
        "config_kwargs": {"s3": {"addressing_style": "virtual", "use_accelerate_endpoint": True}},
    }
    assert bucket_options("az://c", "acc", {}) == {"account_name": "acc", "anon": True}
    azure = {"AZ_CLIENT_ID": "i", "AZURE_STORAGE_ACCESS_KEY": "k"}
    assert bucket_options("az://c", "acc", azure) == {"account_name": "acc", "account_key": "k", "client_id": "i"}
    with pytest.raises(RepositoryError, match="STORAGE_CONFIG is no JSON object"):
        bucket_options("s3://b", "", {"STORAGE_CONFIG": "{secret"})


def test_the_client_of_s3_trusts_the_bundle_that_the_platform_mounts(tmp_path: Path) -> None:
    mounted = {"CA_BUNDLE_CONFIGMAP_NAME": "authorities", "CA_BUNDLE_VOLUME_MOUNT_POINT": str(tmp_path)}
    with pytest.raises(RepositoryError, match=r"there is no .*cabundle\.crt: mount the bundle there"):
        bucket_options("s3://b", "", mounted)
    bundle = write(tmp_path / "cabundle.crt")
    assert bucket_options("s3://b", "", mounted) == {"client_kwargs": {"verify": str(bundle)}}
    assert bucket_options("s3://b", "", mounted | {"S3_VERIFY_SSL": "0"}) == {"client_kwargs": {"verify": False}}
    assert bucket_options("s3://b", "", mounted | {"AWS_CA_BUNDLE": "own"}) == {}  # the client reads it itself


def test_a_container_of_azure_is_known_by_its_web_address() -> None:
    assert blob_address("https://acc.blob.core.windows.net/models/a/b/") == ("az://models/a/b", "acc")
    assert blob_address("https://acc.blob.core.windows.net/models") == ("az://models", "acc")
    for other in ("models/m.tar.gz", "models/m?sv=signature"):
        assert blob_address(f"https://acc.blob.core.windows.net/{other}") is None
    assert blob_address("https://blob.core.windows.net.example.org/models/a") is None


def test_a_source_that_failed_is_left_alone_for_a_while(tmp_path: Path) -> None:
    asked: list[int] = []

    class Broken:
        def fetch(self, cancelled: threading.Event) -> Path:
            asked.append(1)
            if len(asked) == 1:
                raise RepositoryError("it is away")
            return write(tmp_path / "m" / "model.onnx").parent

        def close(self) -> None:
            asked.append(-1)

    store = ModelStore(Path("web:x"), "iris", "web:x", Broken())
    store.refresh()
    assert (store.names(), asked) == ([], [])  # nobody waits for a network before the start
    for look in (store.fetch, store.refresh):
        with pytest.raises(RepositoryError, match="it is away"):
            look()
    assert asked == [1]
    store._again_at = time.monotonic()  # the while has gone by
    store.refresh()
    assert (store.names(), asked) == (["iris"], [1, 1])
    store.close()
    assert asked == [1, 1, -1]


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="invalid model name"):
        ModelStore(tmp_path, "../iris")


def test_a_look_at_all_undoes_nothing_that_came_meanwhile(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load request looks at its model while the index looks at all of them."""
    below = model_store.models_below
    write(store.path / "first" / "net.onnx")
    store.refresh()

    def slowly(path: Path) -> Any:
        found = below(path)
        write(store.path / "second" / "net.onnx")
        (store.path / "first" / "net.onnx").rename(store.path / "first" / "other.onnx")
        store.refresh("second")
        store.refresh("first")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(model_store, "models_below", slowly)
        store.refresh()
    assert store.names() == ["first", "second"]
    folder = store.folder_of("first")
    assert folder is not None
    config = read_config(folder)
    assert config is not None
    assert config.default_model_filename == "other.onnx"


def test_what_the_agent_has_brought_as_a_whole_is_known(store: ModelStore) -> None:
    for name, mark in (("whole", f"SUCCESS.{'0a' * 32}"), ("half", "model.onnx.part"), ("other", "SUCCESS.txt")):
        write(store.path / name / "model.onnx")
        write(store.path / name / mark)
    write(store.path / f"SUCCESS.{'0a' * 32}")
    assert store.marked() == ["whole"]
    assert ModelStore(store.path / "none").marked() == []
