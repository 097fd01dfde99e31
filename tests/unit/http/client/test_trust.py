"""The authorities that a connection to the upstream trusts, and its client certificate."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from flagsvc.core.certificates import CertificateFiles
from flagsvc.core.errors import ConfigurationError
from flagsvc.http.client.trust import OWN, Trust, tls_context
from support.pki import Authority, written

AUTHORITY = Authority()


def test_the_usual_settings() -> None:
    """Certificates are verified by default, and not if verification is switched off."""
    strict, loose = tls_context(True), tls_context(False)
    assert strict.verify_mode is ssl.CERT_REQUIRED and strict.check_hostname and strict.get_ca_certs()
    assert loose.verify_mode is ssl.CERT_NONE and not loose.check_hostname
    assert Trust().context().verify_mode is ssl.CERT_REQUIRED
    assert Trust(False).context().verify_mode is ssl.CERT_NONE
    assert Trust().paths == ()
    Trust().check()


def test_authorities_come_on_top(tmp_path: Path) -> None:
    """The option's authorities are trusted in addition to the default ones."""
    trust = Trust(ca=written(tmp_path, "ca", AUTHORITY.pem))
    assert len(trust.context().get_ca_certs()) == len(Trust().context().get_ca_certs()) + 1
    trust.check()


def test_outbound_proxy_gets_no_client_certificate(tmp_path: Path) -> None:
    """A connection to an outbound proxy trusts the same authorities, but sends no client certificate."""
    own = CertificateFiles(OWN, written(tmp_path, "own", AUTHORITY.issue().both))
    trust = Trust(ca=written(tmp_path, "ca", AUTHORITY.pem), own=own)
    assert trust.nameless == Trust(ca=trust.ca) and len(trust.paths) == 2
    trust.check()
    trust.context()


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    """A certificate file that cannot be used raises ConfigurationError, which names the option."""
    empty = written(tmp_path, "empty", "")
    with pytest.raises(ConfigurationError, match=r"upstreamCa: .* holds no certificate"):
        Trust(ca=empty).check()
    with pytest.raises(ConfigurationError, match=r"upstreamCert: .* holds no certificate"):
        Trust(own=CertificateFiles(OWN, empty)).check()
