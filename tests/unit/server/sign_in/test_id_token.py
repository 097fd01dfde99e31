"""The check of an ID token: the keys, the choice of a key, and the refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, Key

from flagsvc.server.sign_in.exchange import IdTokenError
from flagsvc.server.sign_in.id_token import LEEWAY_S, MAX_AGE_S, MOST_KEYS, UnknownKeyError, check_id_token, read_keys

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


@pytest.mark.parametrize("audience", ["c", ["c"], {"aud": ["c", "d"], "azp": "c"}, {"aud": ["c"], "azp": "c"}])
def test_a_token_for_us(audience: Any) -> None:
    """Of several audiences the authorized party must be ours."""
    assert check(sign(**(audience if isinstance(audience, dict) else {"aud": audience})))["sub"] == "s"


@pytest.mark.parametrize(
    "make",
    [
        lambda: "",
        lambda: "a.b.c",
        lambda: "\ud800.b.c".encode("utf-8", "replace").decode(),
        lambda: jws.serialize_compact({"alg": "ES256", "kid": "one"}, b"[" * 50_000, ONE),
        lambda: jws.serialize_compact({"alg": "ES256", "kid": "one"}, b"[]", ONE),
        lambda: sign(aud=5),
        lambda: sign(aud=[]),
        lambda: sign(sub=5),
        lambda: sign(exp="tomorrow"),
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
    odd = [
        {"kty": "oct", "k": "YWFhYWFhYWFhYWFhYWFhYQ"},
        good | {"use": "enc"},
        {"kty": "EC"},
        {"kty": "RSA", "n": 5},
        5,
        None,
    ]
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


@pytest.mark.parametrize(
    "claims", [{"exp": NOW - LEEWAY_S + 1}, {"iat": NOW + LEEWAY_S}, {"nbf": NOW + LEEWAY_S}, {"iat": NOW - MAX_AGE_S}]
)
def test_clocks_may_differ_by_a_minute(claims: dict[str, Any]) -> None:
    """Within it each time is taken."""
    assert check(sign(**claims))["sub"] == "s"
