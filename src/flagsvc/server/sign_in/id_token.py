"""Checks the ID token of a provider: signature, issuer, audience, times and nonce. It needs the extra `oidc`."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

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
MOST_S = 1e12
"""The latest time that is read, in seconds since the epoch. No clock gets there."""
Claims: TypeAlias = Mapping[str, Any]


class Wanted(NamedTuple):
    """What a token must fit. `now` is in seconds since the epoch."""

    issuer: str
    client: str
    nonce: str
    now: float


def is_text(value: object) -> bool:
    """Return whether a claim is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def is_audience(value: object) -> bool:
    """Return whether a claim is a text, or a list of texts."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def is_time(value: object) -> bool:
    """Return whether a claim is a number of seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST_S < value < MOST_S


TYPES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(("iss", "sub", "nonce"), (is_text, "a text")),
    "aud": (is_audience, "a text or a list of texts"),
    **dict.fromkeys(("exp", "iat"), (is_time, "a time")),
}
"""The claims that a token must have, with their types."""
CLOCKS = "compare the clocks of provider and server"
RULES: tuple[tuple[Callable[[Claims, Wanted], bool], str], ...] = (
    (lambda claims, wanted: claims["iss"] == wanted.issuer, "the claim `iss` names another issuer"),
    (
        lambda claims, wanted: _is_for(claims, wanted.client),
        "the token is for another client: `aud` or `azp` is not oidcClientId",
    ),
    (lambda claims, wanted: _is_same(claims["nonce"], wanted.nonce), "the claim `nonce` is that of another sign-in"),
    (lambda claims, wanted: claims["exp"] > wanted.now - LEEWAY_S, f"the token has expired (`exp`): {CLOCKS}"),
    (lambda claims, wanted: claims["iat"] <= wanted.now + LEEWAY_S, f"the token is from the future (`iat`): {CLOCKS}"),
    (lambda claims, wanted: claims["iat"] >= wanted.now - MAX_AGE_S, f"the token is too old (`iat`): {CLOCKS}"),
    (lambda claims, wanted: is_time(claims.get("nbf", 0)), "the claim `nbf` is not a time"),
    (
        lambda claims, wanted: claims.get("nbf", 0) <= wanted.now + LEEWAY_S,
        f"the token is not valid yet (`nbf`): {CLOCKS}",
    ),
)
"""What must hold of the claims, in this order, each with the reason of the refusal."""


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
    claims, wanted = _verify(token, keys), Wanted(issuer, client, nonce, now)
    for name, (fits, kind) in TYPES.items():
        if claims.get(name) is None:
            raise IdTokenError(f"the claim `{name}` is missing")
        if not fits(claims[name]):
            raise IdTokenError(f"the claim `{name}` is not {kind}")
    for holds, reason in RULES:
        if not holds(claims, wanted):
            raise IdTokenError(reason)
    return claims


def _is_for(claims: Claims, client: str) -> bool:
    """Return whether a token is for a client. Of several audiences the authorized party must be named."""
    audience = [claims["aud"]] if isinstance(claims["aud"], str) else claims["aud"]
    party = claims.get("azp", client if len(audience) == 1 else None)
    return client in audience and party == client


def _is_same(text: str, wanted: str) -> bool:
    """Return whether two texts are the same, in a time that tells nothing of the difference."""
    return hmac.compare_digest(text.encode("utf-8", "replace"), wanted.encode())


def _verify(token: str, keys: Sequence[Key]) -> dict[str, Any]:
    """Return the claims of a token that one of the keys has signed. Raises IdTokenError."""
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, RecursionError):
        raise IdTokenError("it is no signed token, or one that is too long") from None
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
