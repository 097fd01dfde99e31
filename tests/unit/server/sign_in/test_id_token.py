"""The check of an ID token: the keys, the choice of a key, and the refusals.

The person of the claims: what counts, what does not and why. One exchange with a provider: what its failures say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, Key

from flagsvc.server.sign_in.exchange import IdTokenError, ProviderError, fetch
from flagsvc.server.sign_in.id_token import (
    LEEWAY_S,
    LONGEST,
    MAX_AGE_S,
    MOST_GROUPS,
    MOST_KEYS,
    OVERAGE,
    UnknownKeyError,
    check_id_token,
    read_keys,
    read_person,
    shorten_subject,
)
from support.processes import free_port

NOW = 1_750_000_000.0
ONE, OTHER = (ECKey.generate_key("P-256", {"kid": name}) for name in ("one", "other"))
CLAIMS: dict[str, Any] = {"iss": "i", "aud": "c", "sub": "s", "nonce": "n", "iat": NOW, "exp": NOW + 60}


def sign(key: Key = ONE, *, named: bool = True, **changed: Any) -> str:
    """Return a token of a key."""
    header = {"alg": "ES256"} | ({"kid": key.kid} if named else {})
    return jws.serialize_compact(header, json.dumps(CLAIMS | changed), key, algorithms=["ES256"])


def check(token: str, keys: Sequence[Key] = (ONE, OTHER)) -> dict[str, Any]:
    """Return the claims of a token."""
    return check_id_token(token, keys, issuer="i", client="c", nonce="n", now=NOW)


def test_the_key_is_that_of_its_name() -> None:
    """Without a name any key of the provider may have signed; an unknown one asks for new keys."""
    assert check(sign(OTHER))["sub"] == "s" and check(sign(OTHER, named=False))["sub"] == "s"
    for token in (sign(OTHER), sign(OTHER, named=False)):
        with pytest.raises(UnknownKeyError):
            check(token, [ONE])


@pytest.mark.parametrize(
    "claims",
    [
        *({"aud": "c"}, {"aud": ["c"]}, {"aud": ["c", "d"], "azp": "c"}, {"aud": ["c"], "azp": "c"}),
        *({"exp": NOW - LEEWAY_S + 1}, {"iat": NOW + LEEWAY_S}, {"nbf": NOW + LEEWAY_S}, {"iat": NOW - MAX_AGE_S}),
    ],
)
def test_a_token_for_us(claims: dict[str, Any]) -> None:
    """Of several audiences the authorized party must be ours. Clocks may differ by a minute."""
    assert check(sign(**claims))["sub"] == "s"


@pytest.mark.parametrize(
    "make",
    [
        lambda: "",
        lambda: "a.b.c",
        lambda: "\ud800.b.c".encode("utf-8", "replace").decode(),
        lambda: jws.serialize_compact({"alg": "ES256", "kid": "one"}, b"[" * 50_000, ONE),
        lambda: jws.serialize_compact({"alg": "ES256", "kid": "one"}, b"[]", ONE),
        lambda: sign(aud=[]),
        lambda: sign(iat=True),
    ],
)
def test_odd_tokens_are_refused(make: Callable[[], str]) -> None:
    """What is no token, or has claims of another type, raises the error of a token and nothing else."""
    with pytest.raises(IdTokenError):
        check(make())


def test_which_keys_are_read() -> None:
    """Those for signatures, of a kind with two halves; secrets, keys for encryption and malformed ones are left out."""
    good = ONE.as_dict(private=False)
    odd = [{"kty": "oct", "k": "YWFhYWFhYWFhYWFhYWFhYQ"}, good | {"use": "enc"}, {"kty": "EC"}, {"kty": "RSA", "n": 5}, 5, None]
    assert [key.kid for key in read_keys({"keys": [*odd, good]})] == ["one"]
    assert read_keys({}) == read_keys([]) == read_keys({"keys": 5}) == []
    assert len(read_keys({"keys": [good] * (2 * MOST_KEYS)})) == MOST_KEYS


ODD: list[tuple[dict[str, Any], str]] = [
    ({"nonce": ["n"]}, "the claim `nonce` is not a text"),
    ({"nonce": ["other", "n"]}, "the claim `nonce` is not a text"),
    ({"nonce": {"n": "n"}}, "the claim `nonce` is not a text"),
    ({"nonce": 5}, "the claim `nonce` is not a text"),
    ({"nonce": "N"}, "the claim `nonce` is that of another sign-in"),
    ({"nonce": "\ud800"}, "the claim `nonce` is that of another sign-in"),
    ({"nonce": None}, "the claim `nonce` is missing"),
    ({"iss": ["i"]}, "the claim `iss` is not a text"),
    ({"iss": "j"}, "the claim `iss` names another issuer"),
    ({"sub": ["s"]}, "the claim `sub` is not a text"),
    ({"sub": " "}, "the claim `sub` is not a text"),
    ({"aud": {"c": "c"}}, "the claim `aud` is not a text or a list of texts"),
    ({"aud": ["c", 5]}, "the claim `aud` is not a text or a list of texts"),
    ({"aud": "d"}, "the token is for another client"),
    ({"aud": ["c", "d"]}, "the token is for another client"),
    ({"azp": ["c"]}, "the token is for another client"),
    ({"exp": "tomorrow"}, "the claim `exp` is not a time"),
    ({"exp": True}, "the claim `exp` is not a time"),
    ({"exp": float("inf")}, "the claim `exp` is not a time"),
    ({"iat": float("nan")}, "the claim `iat` is not a time"),
    ({"exp": 10**400}, "the claim `exp` is not a time"),
    ({"nbf": "now"}, "the claim `nbf` is not a time"),
    ({"nbf": None}, "the claim `nbf` is not a time"),
    ({"exp": NOW - LEEWAY_S}, "the token has expired"),
    ({"iat": NOW + LEEWAY_S + 1}, "the token is from the future"),
    ({"nbf": NOW + LEEWAY_S + 1}, "the token is not valid yet"),
    ({"iat": NOW - MAX_AGE_S - 1}, "the token is too old"),
]


@pytest.mark.parametrize(("claims", "reason"), ODD, ids=[repr(claims)[:40] for claims, _ in ODD])
def test_each_refusal_has_its_reason(claims: dict[str, Any], reason: str) -> None:
    """Also for a value of another type. The reason holds nothing of the token."""
    with pytest.raises(IdTokenError) as refused:
        check(sign(**claims))
    assert str(refused.value).startswith(reason)


PLAIN: dict[str, Any] = {"sub": "s", "email": "a@b.example", "email_verified": True, "name": "A", "groups": ["g"]}


def test_all_that_counts() -> None:
    """All claims count, so no reason is given. Another claim with a name counts where the first one does not."""
    assert read_person(PLAIN, "groups") == ("s", "a@b.example", "A", ("g",), ())
    assert read_person(PLAIN | {"name": 5, "preferred_username": "p"}, "groups").name == "p"


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
