"""Certificates for tests: an authority, what it issues, and the files that a server reads."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Files:
    """A certificate with its key, as files."""

    certificate: Path
    key: Path

    def write(self, issued: trustme.LeafCert) -> None:
        """Puts another certificate in their place, each file at once."""
        _replace(self.certificate, b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        _replace(self.key, issued.private_key_pem.bytes())


class Authority:
    """Issues certificates for this machine, and knows them again."""

    def __init__(self, folder: Path) -> None:
        """Keeps its files in a folder."""
        self._authority = trustme.CA()
        self._folder = folder
        self.root = folder / "root.pem"
        _replace(self.root, self._authority.cert_pem.bytes())

    @property
    def root_pem(self) -> bytes:
        """Its own certificate."""
        return self._authority.cert_pem.bytes()

    def issue(self) -> trustme.LeafCert:
        """A new certificate."""
        return self._authority.issue_cert("localhost", "127.0.0.1")

    def files(self, name: str) -> Files:
        """A new certificate as files."""
        files = Files(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        files.write(self.issue())
        return files

    def server_context(self) -> ssl.SSLContext:
        """What a server needs that shows a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.issue().configure_cert(context)
        return context

    def client_context(self, files: Files | None = None, protocols: tuple[str, ...] = ()) -> ssl.SSLContext:
        """What a client needs that trusts this authority, and may show a certificate of its own."""
        context = ssl.create_default_context(cafile=str(self.root))
        if files is not None:
            context.load_cert_chain(files.certificate, files.key)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(content)
    beside.replace(path)
