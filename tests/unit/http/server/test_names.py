"""Header names and what they mean."""

from __future__ import annotations

from flagsvc.http.call import HEADERS, KEY, ORIGIN
from flagsvc.http.server.names import CONNECTION, LONGEST, MOST, Names


def test_spellings() -> None:
    """The case of letters does not matter; a name nobody reads has no kind."""
    names = Names({**HEADERS, b"x-key": KEY})
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
    assert Names({b"expect": KEY}).kind(b"Expect") == KEY


def test_what_is_remembered_is_bounded() -> None:
    """Names made up by callers do not add up, and do not push out the usual ones."""
    names = Names(HEADERS)
    for at in range(2 * MOST):
        assert names.kind(b"x-%d" % at) == 0
    assert len(names.known) == MOST and names.kind(b"Origin") == ORIGIN and names.kind(b"oriGIN") == ORIGIN


def test_a_long_name_is_not_remembered() -> None:
    """Nor do a few long ones fill the memory: a name may have as many bytes as a head."""
    names = Names(HEADERS)
    before = len(names.known)
    assert names.kind(b"X" * LONGEST) == 0 == names.kind(b"X" * (LONGEST + 1))
    assert len(names.known) == before + 1
