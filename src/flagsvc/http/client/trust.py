"""Whom a connection trusts, and as whom it shows itself: authorities, and a certificate of ours (mutual TLS).

The option httpOptions.rejectUnauthorized can switch the check off (specification: Options).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, load_authorities

CA = "upstreamCa"
OWN = CertificateOptionNames("upstreamCert", "upstreamKey", "upstreamKeyPassword")


@dataclass(frozen=True)
class Trust:
    """`ca` is a file of authorities to trust beside the usual ones; `own` is shown to whom we talk to, never to what is between."""

    reject_unauthorized: bool = True
    ca: str | None = None
    own: CertificateFiles | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The files it depends on."""
        return (*(() if self.ca is None else (self.ca,)), *(() if self.own is None else self.own.paths))

    @property
    def nameless(self) -> Trust:
        """The same, without a certificate of ours."""
        return Trust(self.reject_unauthorized, self.ca)

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings. Raises ConfigurationError where a file cannot be used. Takes its time: call it in a thread."""
        context = tls_context(self.reject_unauthorized)
        self._load(context)
        return context

    def check(self) -> None:
        """Raise ConfigurationError where a file cannot be used; the system's authorities are not read for that."""
        if self.paths:
            self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _load(self, context: ssl.SSLContext) -> None:
        if self.ca is not None:
            load_authorities(context, CA, self.ca)
        if self.own is not None:
            self.own.load(context)


def tls_context(reject_unauthorized: bool) -> ssl.SSLContext:
    """Return the usual TLS settings (specification: Options).

    Trusted are the system's authorities, which OpenSSL looks for where SSL_CERT_FILE and SSL_CERT_DIR say, and certifi's.
    """
    import certifi

    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if reject_unauthorized:
        context.load_verify_locations(certifi.where())
        return context
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
