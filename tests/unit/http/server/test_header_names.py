"""Header names and their kinds."""

from __future__ import annotations

from flagsvc.http.call import HEADERS, KEY, ORIGIN
from flagsvc.http.server.request_parser import CONNECTION, LONGEST_SPELLING, MAX_SPELLINGS, HeaderNames


def test_spellings() -> None:
    """The case of letters does not matter; a name that is not read has no kind."""
    names = HeaderNames({**HEADERS, b"x-key": KEY}, 0)
    for name, kind in (
        (b"origin", ORIGIN),
        (b"Origin", ORIGIN),
        (b"oRIGIN", ORIGIN),
        (b"CONNECTION", CONNECTION),
        (b"X-KEY", KEY),
    ):
        assert names.kind(name) == kind == names.kind(name)
    assert names.kind(b"User-Agent") == 0 == names.kind(b"User-Agent")


def test_the_contract_goes_first() -> None:
    """A header that the contract reads is the contract's."""
    assert HeaderNames({b"expect": KEY}, 0).kind(b"Expect") == KEY


def test_what_is_remembered_is_bounded() -> None:
    """Names made up by callers do not add up, and do not push out the usual ones."""
    names = HeaderNames(HEADERS, 0)
    for at in range(2 * MAX_SPELLINGS):
        assert names.kind(b"x-%d" % at) == 0
    assert len(names.known) == MAX_SPELLINGS and names.kind(b"Origin") == ORIGIN and names.kind(b"oriGIN") == ORIGIN


def test_a_long_name_is_not_remembered() -> None:
    """Long names are not remembered, so that they cannot fill the memory: a name may be as long as a head."""
    names = HeaderNames(HEADERS, 0)
    before = len(names.known)
    assert names.kind(b"X" * LONGEST_SPELLING) == 0 == names.kind(b"X" * (LONGEST_SPELLING + 1))
    assert len(names.known) == before + 1
