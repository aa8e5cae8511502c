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

_CURVE = ec.SECP256R1()


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

    def issue(
        self, *names: str, not_before: datetime | None = None, not_after: datetime | None = None
    ) -> trustme.LeafCert:
        """A new certificate, for this machine where no other names are given."""
        names = names or ("localhost", "127.0.0.1")
        return self._authority.issue_cert(*names, not_before=not_before, not_after=not_after)

    def with_extensions(self, name: str, *extensions: x509.ExtensionType) -> Files:
        """A certificate as files that has these extensions and no others."""
        files, key = Files(self._folder / f"{name}.pem", self._folder / f"{name}.key"), ec.generate_private_key(_CURVE)
        builder = _unsigned(key, name, self._issuer())
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        signed = builder.sign(self._issuer_key(), hashes.SHA256())
        _replace(files.certificate, signed.public_bytes(serialization.Encoding.PEM))
        _replace(files.key, _private_pem(key))
        return files

    def files(self, name: str, issued: trustme.LeafCert | None = None) -> Files:
        """A certificate as files; a new one where none is given."""
        files = Files(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        files.write(self.issue() if issued is None else issued)
        return files

    def version_1(self, name: str) -> Files:
        """A certificate of X.509 version 1 as files, as `openssl x509 -req` issues it without extensions."""
        files, key = Files(self._folder / f"{name}.pem", self._folder / f"{name}.key"), ec.generate_private_key(_CURVE)
        # What an authority signs.
        unsigned = _unsigned(key, name, self._issuer()).sign(key, hashes.SHA256()).tbs_certificate_bytes
        _replace(files.certificate, _pem(_version_1(unsigned, self._issuer_key())))
        _replace(files.key, _private_pem(key))
        return files

    def _issuer(self) -> x509.Name:
        return x509.load_pem_x509_certificate(self.root_pem).subject

    def _issuer_key(self) -> ec.EllipticCurvePrivateKey:
        key = serialization.load_pem_private_key(self._authority.private_key_pem.bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

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
    key = ec.generate_private_key(_CURVE)
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
    _replace(files.key, _private_pem(key))
    return files


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _unsigned(key: ec.EllipticCurvePrivateKey, name: str, issuer: x509.Name) -> x509.CertificateBuilder:
    """A certificate without extensions, before it is signed."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _version_1(unsigned: bytes, key: ec.EllipticCurvePrivateKey) -> bytes:
    """The same signed, and of version 1, which is what a certificate without a version has."""
    version_3 = b"\xa0\x03\x02\x01\x02"
    _, fields = unsigned.split(version_3, 1)
    unsigned = _sequence(fields)
    ecdsa_with_sha256 = bytes.fromhex("300a06082a8648ce3d040302")
    signature = key.sign(unsigned, ec.ECDSA(hashes.SHA256()))
    bits = b"\x03" + bytes([len(signature) + 1, 0]) + signature
    return _sequence(unsigned + ecdsa_with_sha256 + bits)


def _sequence(content: bytes) -> bytes:
    """A SEQUENCE of DER, of 128 to 65,535 bytes."""
    size = len(content).to_bytes(2, "big")
    head = b"\x30\x82" + size if size[0] else b"\x30\x81" + size[1:]
    return head + content


def _pem(certificate: bytes) -> bytes:
    return x509.load_der_x509_certificate(certificate).public_bytes(serialization.Encoding.PEM)


def _replace(path: Path, content: bytes) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(content)
    beside.replace(path)
