"""Certificates for tests: an authority, what it issues, and the files that a server reads."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Files:
    """A certificate with its key, as files."""

    certificate: Path
    key: Path

    def write(self, issued: trustme.LeafCert) -> None:
        """Puts another certificate in their place, each file at once."""
        _replace(self.certificate, b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        _replace(self.key, issued.private_key_pem.bytes())


def encrypted(endpoint: str, files: Files, clients: Path | None = None) -> list[str]:
    """The flags that encrypt an endpoint; with roots, only for clients whose certificate leads to one of them."""
    flags = [
        f"--{endpoint}-use-ssl",
        f"--{endpoint}-server-cert={files.certificate}",
        f"--{endpoint}-server-key={files.key}",
    ]
    return flags + ([] if clients is None else [f"--{endpoint}-use-ssl-mutual", f"--{endpoint}-root-cert={clients}"])


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

    def issue(self, *names: str, not_after: datetime | None = None) -> trustme.LeafCert:
        """A new certificate, for this machine where no other names are given."""
        return self._authority.issue_cert(*(names or ("localhost", "127.0.0.1")), not_after=not_after)

    def files(self, name: str, issued: trustme.LeafCert | None = None) -> Files:
        """A certificate as files; a new one where none is given."""
        files = Files(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        files.write(self.issue() if issued is None else issued)
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


def self_signed(folder: Path, *, valid_days: int = 1) -> Files:
    """A certificate that is its own authority, as `openssl req -x509` makes it; expired for less than no days."""
    files = Files(folder / "self.pem", folder / "self.key")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=valid_days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    )
    certificate = builder.sign(key, hashes.SHA256())
    _replace(files.certificate, certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    encoded = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    _replace(files.key, encoded)
    return files


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(content)
    beside.replace(path)
