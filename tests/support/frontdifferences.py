"""The intended differences between our HTTP server and uvicorn's protocol (decision 0021). Each row is one difference.

A row is tried at the first reply that differs: `ours` and `theirs` are the replies from there on. All earlier ones were equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from support.frontpeers import Reply, Talk

UPGRADE = re.compile(rb"upgrade:|CONNECT ", re.IGNORECASE)
CODING = re.compile(rb"transfer-encoding:", re.IGNORECASE)
NO_PATH = re.compile(rb"://[^/ \r\n]{0,99}[ ?#]")
REFUSED = (400, 431)


@dataclass(frozen=True)
class Case:
    """The stream, and the rest of both talks from the first difference on."""

    stream: bytes
    ours: Talk
    theirs: Talk

    @property
    def first(self) -> tuple[Reply, Reply] | None:
        """The first replies of both, if there are any."""
        return (self.ours.replies[0], self.theirs.replies[0]) if self.ours.replies and self.theirs.replies else None

    def same_but(self, ours: tuple[str, str] | None, theirs: tuple[str, str] | None) -> bool:
        """Return whether the first replies differ only in one field each."""
        if self.first is None:
            return False
        mine, other = self.first
        return (
            (mine.status, mine.body) == (other.status, other.body)
            and [each for each in mine.fields if each != ours] == [each for each in other.fields if each != theirs]
            and (ours is None or ours in mine.fields)
            and (theirs is None or theirs in other.fields)
        )


CLOSE = ("connection", "close")
KEEP = ("connection", "keep-alive")


def gives_up(case: Case) -> bool:
    """Return true if bad bytes make uvicorn drop the unanswered requests before them."""
    left = case.theirs.replies
    both_ended = case.ours.ended and case.theirs.ended
    return both_ended and len(left) == 1 and left[0].status in REFUSED and bool(case.ours.replies)


def forgets_after_upgrade(case: Case) -> bool:
    """Return true if uvicorn drops the bytes in one read with an upgrade, body and later requests, and then continues."""
    return UPGRADE.search(case.stream) is not None


def keeps_old_connections(case: Case) -> bool:
    """Return true if a caller of HTTP/1.0 asks to keep the connection, and uvicorn closes it."""
    return b"HTTP/1.0" in case.stream and case.same_but(KEEP, CLOSE)


def closes_over_limit(case: Case) -> bool:
    """Return true if a body is over the limit: uvicorn reads all of it, of any size."""
    return case.same_but(CLOSE, None) and case.ours.replies[0].status == 413 and case.ours.ended


def closes_unexpected(case: Case) -> bool:
    """Return true if the answer comes before a body that waits for `100 Continue`: with uvicorn the next bytes are ambiguous."""
    return b"100-continue" in case.stream.lower() and case.same_but(CLOSE, None) and case.ours.ended


def finds_no_path(case: Case) -> bool:
    """Return true if an absolute target has no path: uvicorn fails on it."""
    return NO_PATH.search(case.stream) is not None and case.first is not None and case.first[1].status == 400


def refuses_framing(case: Case) -> bool:
    """Return true if other programs may see another end of a body: chunks in HTTP/1.0, codings beside `chunked`."""
    left = case.theirs.replies
    refused = bool(case.ours.replies) and case.ours.replies[0].status == 400 and case.ours.ended
    return refused and CODING.search(case.stream) is not None and (not left or left[0].status != 400)


def refuses_hosts(case: Case) -> bool:
    """Return true if a request of HTTP/1.1 has no Host, two of them, or a bad one: uvicorn does not check it."""
    refused = bool(case.ours.replies) and case.ours.replies[0].status == 400 and case.ours.ended
    heads = [part.lower() for part in case.stream.split(b"\r\n\r\n")]
    return refused and any(b"http/1.1" in part and part.count(b"\nhost: proxy") != 1 for part in heads)


def closes_tunnels(case: Case) -> bool:
    """Return true if bytes after CONNECT were meant for the other end of a tunnel: uvicorn keeps the connection."""
    return b"CONNECT " in case.stream and case.same_but(CLOSE, None) and case.ours.ended


def answers_once(case: Case) -> bool:
    """Return true if uvicorn refuses the body of a request that it has already answered."""
    left = case.theirs.replies
    return case.ours.ended and not case.ours.replies and len(left) == 1 and left[0].status in REFUSED


DIFFERENCES: tuple[Callable[[Case], bool], ...] = (
    keeps_old_connections,
    closes_over_limit,
    closes_unexpected,
    finds_no_path,
    answers_once,
    refuses_framing,
    refuses_hosts,
    closes_tunnels,
    gives_up,
    forgets_after_upgrade,
)


def difference(stream: bytes, ours: Talk, theirs: Talk) -> str | None:
    """Return the name of the row that explains a difference; empty without a difference, None without a row."""
    if ours == theirs:
        return ""
    pairs = zip(ours.replies, theirs.replies, strict=False)
    shortest = min(len(ours.replies), len(theirs.replies))
    at = next((index for index, (mine, other) in enumerate(pairs) if mine != other), shortest)
    case = Case(stream, Talk(ours.replies[at:], ours.ended), Talk(theirs.replies[at:], theirs.ended))
    return next((row.__name__ for row in DIFFERENCES if row(case)), None)
