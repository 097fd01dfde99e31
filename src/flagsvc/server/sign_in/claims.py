"""Reads the person of the claims of an ID token. What does not count of them has its reason, for the log.

A claim beside the subject never refuses a person: it counts, or counts as absent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

Claims: TypeAlias = Mapping[str, Any]
MOST_GROUPS = 1000
LONGEST = 255
"""The most characters of a subject and of an address."""
CUT = "\u2026"
"""Stands for what a shortened subject leaves out. No subject with it is kept as it is, so none equals a shortened one."""
KEPT = 190
"""The characters that a shortened subject keeps, in front of a digest of all."""

NOT_VERIFIED = (
    "the address does not count: the provider does not say that it is verified (`email_verified` is not true)"
)
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
    """Return the person of the claims of a token that was checked."""
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
