"""The trusted authorities of a connection, and our own certificate (mutual TLS).

The option httpOptions.rejectUnauthorized can switch the check off (specification: Options).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace

from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, load_authorities

CA = "upstreamCa"
OWN = CertificateOptionNames("upstreamCert", "upstreamKey", "upstreamKeyPassword")


@dataclass(frozen=True)
class Trust:
    """`ca` is a file of additional authorities. `own` is the certificate for the upstream; outbound proxies do not get it.

    `more` are further files of authorities, each with the option that gives its path.
    """

    reject_unauthorized: bool = True
    ca: str | None = None
    own: CertificateFiles | None = None
    more: tuple[tuple[str, str], ...] = ()

    @property
    def authorities(self) -> tuple[tuple[str, str], ...]:
        """The files of additional authorities, each with its option."""
        return (*(() if self.ca is None else ((CA, self.ca),)), *self.more)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it depends on."""
        return (*(path for _, path in self.authorities), *(() if self.own is None else self.own.paths))

    @property
    def nameless(self) -> Trust:
        """The same without our own certificate."""
        return replace(self, own=None)

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings. Raises ConfigurationError if a file cannot be used. Takes time, so call it in a thread."""
        context = tls_context(self.reject_unauthorized)
        self._load(context)
        return context

    def check(self) -> None:
        """Raise ConfigurationError if a file cannot be used. Does not read the system's authorities."""
        if self.paths:
            self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _load(self, context: ssl.SSLContext) -> None:
        for option, path in self.authorities:
            load_authorities(context, option, path)
        if self.own is not None:
            self.own.load(context)


def tls_context(reject_unauthorized: bool) -> ssl.SSLContext:
    """Return the usual TLS settings (specification: Options).

    Trusted are the system's authorities, which OpenSSL finds by SSL_CERT_FILE and SSL_CERT_DIR, and those of certifi.
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
