"""The person of the claims: what counts, what does not and why.

One exchange with a provider: what its failures say.
"""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.sign_in.exchange import ProviderError, fetch
from flagsvc.server.sign_in.id_token import LONGEST, MOST_GROUPS, OVERAGE, read_person, shorten_subject
from support.processes import free_port

PLAIN: dict[str, Any] = {"sub": "s", "email": "a@b.example", "email_verified": True, "name": "A", "groups": ["g"]}


def test_all_that_counts() -> None:
    """All claims are used, so there is no reason."""
    assert read_person(PLAIN, "groups") == ("s", "a@b.example", "A", ("g",), ())


@pytest.mark.parametrize(
    ("claims", "left", "reason"),
    [
        ({"email": None}, "email", "the claim `email` is missing"),
        ({"email": ["a@b.example"]}, "email", "the claim `email` is not a text"),
        ({"email_verified": "true"}, "email", "is not true"),
        ({"email": f"{'a' * LONGEST}@b.example"}, "email", "longer than 255"),
        ({"email": "a\u202e@b.example"}, "email", "not printable"),
        ({"name": ["A"]}, "name", "a claim with a name is not a text"),
        ({"groups": {"g": 1}}, "groups", "is not a text or a list of texts"),
        ({"groups": None}, "groups", "is missing"),
        ({"groups": None, "hasgroups": "true"}, "groups", OVERAGE),
        ({"groups": None, "_claim_names": {"groups": "src1"}}, "groups", OVERAGE),
        ({"groups": None, "_claim_names": ["groups"]}, "groups", "is missing"),
    ],
)
def test_what_does_not_count(claims: dict[str, Any], left: str, reason: str) -> None:
    """It is as if the claim were absent, and the reason says so. Other claims count."""
    found = read_person(PLAIN | claims, "groups")
    assert not getattr(found, left) and len(found.ignored) == 1 and reason in found.ignored[0]
    assert sum(bool(each) for each in found[:4]) == 3


def test_a_part_of_the_groups() -> None:
    """Of a list the texts count, up to a bound; the reason says that some do not."""
    some = read_person(PLAIN | {"groups": ["g", 5, "h"]}, "groups")
    assert some.groups == ("g", "h") and "an entry of the claim `groups` is not a text" in some.ignored
    many = read_person(PLAIN | {"groups": ["g"] * (MOST_GROUPS + 1)}, "groups")
    assert len(many.groups) == MOST_GROUPS and "only the first 1000" in many.ignored[0]


def test_the_other_claim_with_a_name() -> None:
    """It counts where the first one does not."""
    assert read_person(PLAIN | {"name": 5, "preferred_username": "p"}, "groups").name == "p"


def test_subjects_are_told_apart() -> None:
    """A subject of at most 255 printable characters stays. Other subjects get unique names."""
    plain = ["s", "x" * LONGEST, "\u00fc"]
    assert [shorten_subject(each) for each in plain] == plain
    odd = ["x" * (LONGEST + 1), "x" * (LONGEST + 2), "s\n", "s\r", "s\x00", "s\ud83d", "s\u202e", "\U0001f600" * 9999]
    found = [shorten_subject(each) for each in odd]
    assert len({*found, *plain, *map(shorten_subject, found)}) == 2 * len(odd) + len(plain)
    assert all(len(each) <= LONGEST and each.isprintable() for each in found)


def test_a_failure_shows_no_secret_of_the_address() -> None:
    """A discovery document may name an address with a password or a key in it. The log has the rest of the address."""
    port = free_port()
    with pytest.raises(ProviderError, match=f"127.0.0.1:{port}/token") as failed:
        fetch(f"http://user:secret@127.0.0.1:{port}/token?key=secret")
    assert "secret" not in str(failed.value)
