"""Files with a secret stay out of images, of apps and of models alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.deploy.app_place import find_app
from alipes.deploy.image.models import find_models
from alipes.deploy.image.selection import holds_private_key
from support.models import add_model, times

KEY = "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("name", "content", "is_key"),
    [
        ("key.pem", KEY, True),
        ("server.txt", KEY, True),
        ("id_rsa", KEY.replace("PRIVATE", "OPENSSH PRIVATE"), True),
        ("ec", f"-----BEGIN EC PARAMETERS-----\nBgg\n-----END EC PARAMETERS-----\n{KEY}", True),
        ("both.pem", CERTIFICATE + KEY, True),
        ("exported.pem", f"Bag Attributes\n{KEY}", True),
        ("cert.pem", CERTIFICATE, False),
        ("public.pem", KEY.replace("PRIVATE", "PUBLIC"), False),
        ("app.py", f'key = """\n{KEY}"""', False),
        ("empty.pem", "", False),
    ],
)
def test_a_private_key_is_known_by_its_content(tmp_path: Path, name: str, content: str, is_key: bool) -> None:
    (tmp_path / name).write_text(content)
    assert holds_private_key(tmp_path / name) is is_key


def test_keys_beside_an_app_stay_out_and_are_named(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    (tmp_path / "tls").mkdir()
    (tmp_path / "tls" / "server").write_text(KEY)
    (tmp_path / "tls" / "cert.pem").write_text(CERTIFICATE)
    found = find_app(tmp_path / "app.py")
    assert sorted(found.contents) == ["app", "app/app.py", "app/tls/cert.pem"]
    assert found.left_out == ("tls/server (a private key)",)


def test_keys_and_variables_among_models_stay_out(tmp_path: Path) -> None:
    add_model(tmp_path, "times", times())
    (tmp_path / "times" / "key.pem").write_text(KEY)
    (tmp_path / ".env").write_text("TOKEN=1")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").touch()
    found = find_models(str(tmp_path))
    assert not [path for path in found.contents if "key" in path or ".env" in path or ".git" in path]
    assert found.left_out == (".env", ".git", "times/key.pem (a private key)")
