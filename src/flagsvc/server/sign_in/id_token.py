"""Checks the ID token of a provider: signature, issuer, audience, times and nonce. It needs the extra `oidc`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key

from flagsvc.server.sign_in.exchange import IdTokenError

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""The algorithms that are accepted: signatures with a key that only the provider has. `none` and HMAC are not among them."""
KEY_TYPES = ("RSA", "EC", "OKP")
MOST_KEYS = 32
LEEWAY_S = 60
"""Seconds by which the clocks of provider and server may differ."""
MAX_AGE_S = 3600
"""Seconds after which a token is too old, also if it says otherwise."""
LONGEST = 255
"""The most characters of a subject."""


class UnknownKeyError(IdTokenError):
    """The key of the token is none that is known; the provider may have new ones."""


class Registry(jws.JWSRegistry):
    """The algorithms for joserfc. Its own registry warns of EdDSA, whose new name providers do not use yet."""

    def get_alg(self, name: str) -> Any:
        """Return an algorithm. Raises IdTokenError for one that is not accepted."""
        if name not in ALGORITHMS:
            raise IdTokenError("its algorithm is not accepted")
        return self.algorithms[name]


REGISTRY = Registry()


def read_keys(document: object) -> list[Key]:
    """Return the keys for signatures of a provider's key set; of other kinds and malformed ones none."""
    listed = document.get("keys") if isinstance(document, dict) else None
    found = []
    for each in (listed if isinstance(listed, list) else [])[:MOST_KEYS]:
        if isinstance(each, dict) and each.get("kty") in KEY_TYPES and each.get("use", "sig") == "sig":
            try:
                found.append(JWKRegistry.import_key({name: each[name] for name in each if name != "d"}))
            except (JoseError, ValueError, TypeError, KeyError):
                continue
    return found


def check_id_token(
    token: str, keys: Sequence[Key], *, issuer: str, client: str, nonce: str, now: float
) -> dict[str, Any]:
    """Return the claims of an ID token. `now` is in seconds since the epoch. Raises IdTokenError."""
    claims = _verify(token, keys)
    rules: dict[str, Any] = {"iss": {"essential": True, "value": issuer}, "nonce": {"essential": True, "value": nonce}}
    rules |= {name: {"essential": True} for name in ("sub", "aud", "exp", "iat")}
    try:
        jwt.JWTClaimsRegistry(now=int(now), leeway=LEEWAY_S, **rules).validate(claims)
    except JoseError as error:
        raise IdTokenError(f"the claim `{getattr(error, 'claim', '?')}` is missing, wrong or expired") from None
    _check_audience(claims, client)
    if now - claims["iat"] > MAX_AGE_S:
        raise IdTokenError("the token is too old")
    if not claims["sub"] or len(claims["sub"]) > LONGEST or not claims["sub"].isprintable():
        raise IdTokenError("the subject is empty or too long")
    return claims


def _check_audience(claims: dict[str, Any], client: str) -> None:
    """Raise IdTokenError for a token that is for another program."""
    audience = [claims["aud"]] if isinstance(claims["aud"], str) else claims["aud"]
    party = claims.get("azp", client if len(audience) == 1 else None)
    if client not in audience or party != client:
        raise IdTokenError("the token is for another client")


def _verify(token: str, keys: Sequence[Key]) -> dict[str, Any]:
    """Return the claims of a token that one of the keys has signed. Raises IdTokenError."""
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, RecursionError):
        raise IdTokenError("it is no signed token") from None
    if header.get("alg") not in ALGORITHMS:
        raise IdTokenError("its algorithm is not accepted")
    name = header.get("kid")
    fitting = [key for key in keys if name is None or key.kid == name]
    for key in fitting:
        try:
            return dict(jwt.decode(token, key, registry=REGISTRY).claims)
        except (JoseError, ValueError, TypeError, RecursionError):
            continue
    if not fitting or name is None:
        raise UnknownKeyError("it is signed with an unknown key")
    raise IdTokenError("its signature is wrong")
