"""alipes with an encrypted HTTP endpoint, and a certificate for it that nobody else has."""

import ssl
from pathlib import Path

import trustme

from bench.paths import WORK
from bench.servers import alipes
from bench.servers.endpoint import Endpoint


def start(repository: Path, name: str) -> Endpoint:
    """Starts `alipes serve` as `alipes.start` does, with HTTP over TLS.

    Raises:
        StartFailed: If it does not become ready.
    """
    authority = trustme.CA()
    certificate, key = _files(name, authority.issue_cert("127.0.0.1"))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    flags = ("--http-use-ssl=true", f"--http-server-cert={certificate}", f"--http-server-key={key}")
    return alipes.start(repository, name, flags=flags, tls=context)


def _files(name: str, issued: trustme.LeafCert) -> tuple[Path, Path]:
    folder = WORK / "certificates"
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return certificate, key
