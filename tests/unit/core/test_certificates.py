"""Files of certificates, keys and authorities: loading, error messages, detection of changes."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, WatchedFiles, load_authorities, stamp_files
from flagsvc.core.errors import ConfigurationError
from support.pki import Authority, written
from support.tracebacks import leaks

NAMES = CertificateOptionNames("someCert", "someKey", "somePassword")
PASSWORD = "open-sesame-1"
AUTHORITY = Authority()
ISSUED = AUTHORITY.issue()


def server() -> ssl.SSLContext:
    """Return a TLS context for a pair."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def refusal(pair: CertificateFiles) -> str:
    """Return the problem of a pair. Neither the problem nor the traceback contains the key or its password."""
    with pytest.raises(ConfigurationError) as caught:
        pair.load(server())
    [problem] = caught.value.problems
    assert PASSWORD not in problem and "PRIVATE" not in problem
    assert not leaks(caught.value, [PASSWORD, "PRIVATE"])
    return problem


def test_a_pair_in_one_file_and_in_two(tmp_path: Path) -> None:
    """A pair loads from one file or two. A password decrypts an encrypted key."""
    both, cert = written(tmp_path, "both", ISSUED.both), written(tmp_path, "cert", ISSUED.cert)
    key, locked = written(tmp_path, "key", ISSUED.key), written(tmp_path, "locked", ISSUED.locked(PASSWORD))
    for pair in (
        CertificateFiles(NAMES, both),
        CertificateFiles(NAMES, cert, key),
        CertificateFiles(NAMES, cert, locked, PASSWORD),
    ):
        pair.load(server())
    assert CertificateFiles(NAMES, cert, key).paths == (cert, key) and CertificateFiles(NAMES, both).paths == (both,)
    assert PASSWORD not in repr(CertificateFiles(NAMES, cert, locked, PASSWORD))


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    """Each problem names the option and the path."""
    cert, key = written(tmp_path, "cert", ISSUED.cert), written(tmp_path, "key", ISSUED.key)
    other, locked = written(tmp_path, "other", AUTHORITY.issue().key), written(tmp_path, "l", ISSUED.locked(PASSWORD))
    empty = written(tmp_path, "empty", "")
    broken = written(tmp_path, "broken", ISSUED.cert[:200] + "\n-----END CERTIFICATE-----\n")
    gone = str(tmp_path / "gone")
    assert refusal(CertificateFiles(NAMES, gone)) == f"someCert: cannot read `{gone}`: no such file or directory"
    assert refusal(CertificateFiles(NAMES, cert, gone)) == f"someKey: cannot read `{gone}`: no such file or directory"
    assert refusal(CertificateFiles(NAMES, "a\0b")) == "someCert: cannot read `a\0b`: it is not a valid path"
    assert refusal(CertificateFiles(NAMES, empty, key)) == f"someCert: `{empty}` holds no certificate in PEM form"
    assert refusal(CertificateFiles(NAMES, cert, empty)) == f"someKey: `{empty}` holds no key in PEM form"
    alone = refusal(CertificateFiles(NAMES, cert))
    assert alone == f"someCert: `{cert}` holds no key in PEM form; give someKey if the key is in a file of its own"
    assert refusal(CertificateFiles(NAMES, cert, locked)) == f"someKey: the key in `{locked}` is encrypted; give somePassword"
    assert refusal(CertificateFiles(NAMES, cert, locked, f"{PASSWORD}?")) == f"somePassword: does not decrypt the key in `{locked}`"
    mixed = refusal(CertificateFiles(NAMES, cert, other))
    assert mixed == f"someKey: the key in `{other}` is not that of the certificate in `{cert}`"
    assert refusal(CertificateFiles(NAMES, broken, key)).startswith(f"someCert: `{broken}` cannot be used: ")


def test_authorities(tmp_path: Path) -> None:
    """The authorities of a file are added to the context. A file without a valid certificate is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_authorities(context, "someCa", written(tmp_path, "ca", AUTHORITY.pem))
    assert len(context.get_ca_certs()) == 1
    empty = written(tmp_path, "empty", "nothing")
    with pytest.raises(ConfigurationError, match=f"someCa: `{empty}` holds no certificate in PEM form"):
        load_authorities(context, "someCa", empty)
    broken = written(tmp_path, "broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigurationError, match=f"someCa: `{broken}` cannot be used: "):
        load_authorities(context, "someCa", broken)


def test_a_change_is_told_once_when_it_is_over(tmp_path: Path) -> None:
    """A certificate without its new key is no pair: two looks must see the same."""
    first, second = written(tmp_path, "first", "a"), written(tmp_path, "second", "b")
    files = WatchedFiles([first, second])
    assert not files.detect_change()
    written(tmp_path, "first", "new")
    assert not files.detect_change()
    written(tmp_path, "second", "newer")
    assert not files.detect_change()
    assert files.detect_change()
    assert not files.detect_change()
    assert not WatchedFiles([]).detect_change()


def test_a_change_that_is_taken_back_is_none(tmp_path: Path) -> None:
    """No change is reported for it, and none for a state that `accept` has accepted."""
    path = written(tmp_path, "file", "a")
    before = os.stat(path)
    files = WatchedFiles([path])
    written(tmp_path, "file", "b")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 5_000_000_000))
    assert not files.detect_change()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [files.detect_change() for _ in range(3)] == [False, False, False]
    written(tmp_path, "file", "longer")
    files.accept()
    assert [files.detect_change() for _ in range(3)] == [False, False, False]


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    """Mounted secrets change this way: a link is replaced by another one. A missing file has a state as well."""
    written(tmp_path, "one", "1"), written(tmp_path, "two", "2")
    link = tmp_path / "link"
    link.symlink_to("one")
    states = [stamp_files([str(link)])]
    link.unlink()
    states.append(stamp_files([str(link)]))
    link.symlink_to("two")
    states.append(stamp_files([str(link)]))
    assert len(set(states)) == 3 and states[1] == (None,)


@pytest.mark.parametrize(
    "ends", [datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)]
)
def test_when_a_certificate_ends(tmp_path: Path, ends: datetime) -> None:
    """The end is that of the first certificate of the file. From 2050 on, its text has four digits of the year."""
    issued = trustme.CA().issue_cert("127.0.0.1", not_after=ends)
    chain = b"".join(each.bytes() for each in (*issued.cert_chain_pems, *trustme.CA().issue_cert("other").cert_chain_pems))
    path = tmp_path / "pair.pem"
    path.write_bytes(b"# a comment\n" + chain)
    assert CertificateFiles(NAMES, str(path)).find_expiry() == ends.timestamp()


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", None])
def test_the_end_of_what_is_no_certificate(tmp_path: Path, text: str | None) -> None:
    """It is not known. A file that is gone has no known end either."""
    path = tmp_path / "pair.pem"
    if text is not None:
        path.write_text(text)
    assert CertificateFiles(NAMES, str(path)).find_expiry() is None
