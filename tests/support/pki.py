"""Certificates for tests: an authority, pairs of it in PEM, and TLS settings for both sides."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Issued:
    """A certificate with its chain, and its key, both as PEM."""

    cert: str
    key: str

    @property
    def both(self) -> str:
        """The two in one text."""
        return self.cert + self.key

    def locked(self, password: str) -> str:
        """Return the key, encrypted."""
        key = load_pem_private_key(self.key.encode(), None)
        form = BestAvailableEncryption(password.encode())
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, form).decode()


class Authority:
    """Vouches for whom it likes."""

    def __init__(self) -> None:
        self._ca = trustme.CA()

    @property
    def pem(self) -> str:
        return self._ca.cert_pem.bytes().decode()

    def issue(self, name: str = HOST) -> Issued:
        leaf = self._ca.issue_cert(name)
        chain = "".join(blob.bytes().decode() for blob in leaf.cert_chain_pems)
        return Issued(chain, leaf.private_key_pem.bytes().decode())

    def server(self, *, wants_certificate: bool = False) -> ssl.SSLContext:
        """Return the settings of a server that this authority vouches for; its callers may have to have a certificate, too."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(HOST).configure_cert(context)
        if wants_certificate:
            self._ca.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self, *, shown: bool = False) -> ssl.SSLContext:
        """Return the settings of a caller that trusts this authority alone, and may show a certificate of it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._ca.configure_trust(context)
        if shown:
            self._ca.issue_cert("caller.example").configure_cert(context)
        return context


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def serial(peer: ssl.SSLSocket | ssl.SSLObject) -> str:
    """Return the serial number of the other side's certificate, if it was checked."""
    return str((peer.getpeercert() or {})["serialNumber"])
