"""Whom a connection to the upstream trusts, and which certificate of ours it shows."""

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
    """Certificates are checked against the system's authorities and certifi's, unless that is switched off; HTTP/1.1 is offered."""
    strict, loose = tls_context(True), tls_context(False)
    assert strict.verify_mode is ssl.CERT_REQUIRED and strict.check_hostname and strict.get_ca_certs()
    assert loose.verify_mode is ssl.CERT_NONE and not loose.check_hostname
    assert Trust().context().verify_mode is ssl.CERT_REQUIRED
    assert Trust(False).context().verify_mode is ssl.CERT_NONE
    assert Trust().paths == ()
    Trust().check()


def test_authorities_come_on_top(tmp_path: Path) -> None:
    """Those of the option are trusted beside all others."""
    trust = Trust(ca=written(tmp_path, "ca", AUTHORITY.pem))
    assert len(trust.context().get_ca_certs()) == len(Trust().context().get_ca_certs()) + 1
    trust.check()


def test_what_is_between_sees_no_certificate(tmp_path: Path) -> None:
    """An outbound proxy has the same authorities, and does not learn who we are."""
    own = CertificateFiles(OWN, written(tmp_path, "own", AUTHORITY.issue().both))
    trust = Trust(ca=written(tmp_path, "ca", AUTHORITY.pem), own=own)
    assert trust.nameless == Trust(ca=trust.ca) and len(trust.paths) == 2
    trust.check()
    trust.context()


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    """It is refused with its option, without reading the system's authorities."""
    empty = written(tmp_path, "empty", "")
    with pytest.raises(ConfigurationError, match=r"upstreamCa: .* holds no certificate"):
        Trust(ca=empty).check()
    with pytest.raises(ConfigurationError, match=r"upstreamCert: .* holds no certificate"):
        Trust(own=CertificateFiles(OWN, empty)).check()
