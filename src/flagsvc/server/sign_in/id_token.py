"""Checks the ID token of a provider: signature, issuer, audience, times and nonce; and reads the person of its claims.

It needs the extra `oidc`. A claim beside the subject never refuses a person: it counts, or counts as absent, for a reason that the
log has.
"""

from __future__ import annotations

import hashlib
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


def check_id_token(token: str, keys: Sequence[Key], *, issuer: str, client: str, nonce: str, now: float) -> dict[str, Any]:
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


MOST_GROUPS = 1000
LONGEST = 255
"""The most characters of a subject and of an address."""
CUT = "\u2026"
"""Stands for what a shortened subject leaves out. A subject that contains it is shortened, too.

So no full subject equals a shortened subject.
"""
KEPT = 190
"""The characters that a shortened subject keeps, in front of a digest of all."""

NOT_VERIFIED = "the address does not count: the provider does not say that it is verified (`email_verified` is not true)"
OVERAGE = (
    "the person has too many groups for a token, so the provider leaves them out (group overage): let it send the groups only that"
    " are assigned to this application, or name a claim with roles of the application in oidcGroupsClaim"
)


class ProvenPerson(NamedTuple):
    """The person of an answer. `email` is a verified address, or empty. `ignored` says what does not count, and why."""

    subject: str
    email: str
    name: str
    groups: tuple[str, ...]
    ignored: tuple[str, ...] = ()


def read_person(claims: Claims, groups_claim: str) -> ProvenPerson:
    email, no_email = read_email(claims)
    name, no_name = read_name(claims)
    groups, no_groups = read_groups(claims, groups_claim)
    ignored = tuple(reason for reason in (no_email, no_name, no_groups) if reason)
    return ProvenPerson(shorten_subject(claims["sub"]), email, name, groups, ignored)


def shorten_subject(subject: str) -> str:
    """Return a subject as it is stored: printable, and not longer than an index of a database takes.

    A longer or odd one ends with a digest of the whole, so that two of them never become one.
    """
    if len(subject) <= LONGEST and subject.isprintable() and CUT not in subject:
        return subject
    start = "".join(letter for letter in subject[:KEPT] if letter.isprintable())
    return f"{start}{CUT}{hashlib.sha256(subject.encode('utf-8', 'surrogatepass')).hexdigest()}"


def read_email(claims: Claims) -> tuple[str, str]:
    """Return the verified address, or an empty text and why none counts."""
    email = claims.get("email")
    if email is None:
        return "", "the claim `email` is missing"
    if not isinstance(email, str):
        return "", "the claim `email` is not a text"
    if claims.get("email_verified") is not True:
        return "", NOT_VERIFIED
    if len(email) > LONGEST or not email.isprintable():
        return "", f"the address does not count: it is longer than {LONGEST} characters, or not printable"
    return email, ""


def read_name(claims: Claims) -> tuple[str, str]:
    """Return the name to show, or an empty text, and which claim does not count."""
    found = [claims.get(name) for name in ("name", "preferred_username")]
    names = [name for name in found if isinstance(name, str) and name]
    odd = any(name is not None and not isinstance(name, str) for name in found)
    return names[0] if names else "", "a claim with a name is not a text" if odd else ""


def read_groups(claims: Claims, path: str) -> tuple[tuple[str, ...], str]:
    """Return the groups in a claim, a text or a list of texts, and why there are none or not all.

    Dots lead into objects, unless a claim has the whole name.
    """
    value: Any = claims.get(path)
    if value is None:
        value = claims
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        missing = f"the claim `{path}` is missing: oidcGroupsClaim names the one with groups, oidcScopes what it needs"
        return (), OVERAGE if is_overage(claims, path) else missing
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list):
        return (), f"the claim `{path}` is not a text or a list of texts"
    groups = tuple(each for each in listed[:MOST_GROUPS] if isinstance(each, str))
    if len(listed) > MOST_GROUPS:
        return groups, f"only the first {MOST_GROUPS} entries of the claim `{path}` count"
    return groups, f"an entry of the claim `{path}` is not a text" if len(groups) < len(listed) else ""


def is_overage(claims: Claims, path: str) -> bool:
    """Return whether a provider says that the groups are elsewhere, as Entra ID does (`_claim_names`, `hasgroups`)."""
    names = claims.get("_claim_names")
    return claims.get("hasgroups") in (True, "true") or (isinstance(names, Mapping) and path in names)
