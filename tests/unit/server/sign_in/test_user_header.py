"""The header that names a person: its senders, and its values."""

from __future__ import annotations

import pytest

from flagsvc.http.call import Call
from flagsvc.http.messages import GET, Request
from flagsvc.server.sign_in.ways import MAX_LENGTH, NamedPerson, UserHeader


def read(*headers: tuple[bytes, bytes], peer: str = "10.0.0.1", groups: str | None = None) -> NamedPerson | None:
    """Return the person of a request with these headers."""
    reader, call = (
        UserHeader("x-user", ("10.0.0.0/8", "fd00::/8"), groups),
        Call(Request(GET, b"/ui", b"", list(headers), peer=peer)),
    )
    call.read(reader.kinds)
    return reader.read(call)


@pytest.mark.parametrize(
    ("peer", "counts"),
    [
        ("10.255.0.1", True),
        ("::ffff:10.0.0.1", True),
        ("fd00::1", True),
        ("11.0.0.1", False),
        ("127.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("", False),
        ("no-address", False),
    ],
)
def test_only_the_networks_of_the_proxy_count(peer: str, counts: bool) -> None:
    """Loopback counts only if it is listed, and a Unix socket has no address."""
    assert (read((b"x-user", b"ada"), peer=peer) is not None) is counts


@pytest.mark.parametrize("value", [b"", b"  ", b"a,b", b"a\x7f", b"\xff", b"a" * (MAX_LENGTH + 1), "a\u202eb".encode()])
def test_what_names_nobody(value: bytes) -> None:
    """A name is one printable text."""
    assert read((b"x-user", value)) is None


def test_a_name_may_be_any_text() -> None:
    """Blanks around it do not matter, letter case does."""
    assert read((b"x-user", " Zoë Å ".encode())) == NamedPerson("Zoë Å")
    assert read((b"x-user", b"a"), (b"x-user", b"a")) is None and read((b"x-other", b"a")) is None


def test_groups() -> None:
    """They are sorted, and each comes once. A missing or doubled header of groups is none."""
    assert read((b"x-user", b"a"), (b"x-groups", b"z, b ,,b"), groups="x-groups") == NamedPerson("a", ("b", "z"))
    for more in ([], [(b"x-groups", b"b")] * 2, [(b"x-groups", b"\xff")]):
        assert read((b"x-user", b"a"), *more, groups="x-groups") == NamedPerson("a", ())


def test_the_digest_is_that_of_name_and_groups() -> None:
    """No two persons share one, however their names and groups are put together."""
    people = [NamedPerson("a"), NamedPerson("a", ()), NamedPerson("a", ("b",)), NamedPerson("b"), NamedPerson("a", ("b", "c"))]
    assert len({each.digest for each in people}) == len(people)
    assert NamedPerson("a", ("b",)).digest == NamedPerson("a", ("b",)).digest
