"""The check of an ID token: which keys are read, which one is taken, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from joserfc import jws, jwt
from joserfc.jwk import ECKey, Key

from flagsvc.server.sign_in.exchange import IdTokenError
from flagsvc.server.sign_in.id_token import MOST_KEYS, UnknownKeyError, check_id_token, read_keys

NOW = 1_750_000_000.0
ONE, OTHER = (ECKey.generate_key("P-256", {"kid": name}) for name in ("one", "other"))
CLAIMS: dict[str, Any] = {"iss": "i", "aud": "c", "sub": "s", "nonce": "n", "iat": NOW, "exp": NOW + 60}


def sign(key: Key = ONE, *, named: bool = True, **changed: Any) -> str:
    """Return a token of a key."""
    header = {"alg": "ES256"} | ({"kid": key.kid} if named else {})
    return jwt.encode(header, CLAIMS | changed, key, algorithms=["ES256"])


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
        lambda: sign(sub="a\nb"),
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
