"""An OpenID provider: the address to sign in at, and the person of an answer (decision 0034)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from flagsvc.core.clock import Clock
from flagsvc.server.sign_in.attempt import Attempt
from flagsvc.server.sign_in.exchange import BusyError, ProviderError, fetch
from flagsvc.server.sign_in.id_token import ProvenPerson, UnknownKeyError, check_id_token, read_keys, read_person
from flagsvc.settings.network import is_safe_origin, url_parts

DISCOVERY = "/.well-known/openid-configuration"
KEPT_S = 3600.0
"""Seconds that the discovery document and the keys are kept."""
KEYS_PAUSE_S = 10.0
"""Seconds between two questions for keys, so that unknown ones do not cost the provider anything."""
MOST_AT_ONCE = 2
"""The most exchanges at the same time: a provider that hangs must not take the threads of other requests."""
WAIT_S = 2.0
"""Seconds to wait for one of these places."""
MOST_WAITING = 2
"""The most that wait: they hold threads too."""
PAUSE_S = 5.0
"""Seconds after a failed question for the discovery document before the next one."""
BASIC, POST = "client_secret_basic", "client_secret_post"


class ProviderSettings(NamedTuple):
    """The options of a provider. `redirect_uri` is the address of this server that it sends people back to."""

    issuer: str
    client: str
    redirect_uri: str
    secret: str | None = None
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"
    name: str | None = None


class Metadata(NamedTuple):
    """What the discovery document says."""

    issuer: str
    authorization: str
    token: str
    keys: str
    methods: tuple[str, ...]
    names_issuer: bool


class Provider:
    """One provider. What it says of itself is asked for at the first sign-in, and kept. Safe to use from any thread."""

    def __init__(self, settings: ProviderSettings, clock: Clock) -> None:
        self.settings = settings
        self.name = settings.name or urlsplit(settings.issuer).netloc
        self._clock = clock
        self._places = BoundedSemaphore(MOST_AT_ONCE)
        self._waiting = BoundedSemaphore(MOST_WAITING)
        self._failed_at = float("-inf")
        self._metadata: Metadata | None = None
        self._metadata_at = 0.0
        self._keys: list[Any] = []
        self._keys_at = float("-inf")

    def address_of(self, attempt: Attempt) -> str:
        """Return the address at which a person signs in. Raises ProviderError, BusyError."""
        found = self._known()
        if found is None:
            with self.place():
                found = self._discover()
        query = {
            "response_type": "code",
            "client_id": self.settings.client,
            "redirect_uri": self.settings.redirect_uri,
            "scope": " ".join(dict.fromkeys(("openid", *self.settings.scopes))),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        return f"{found.authorization}{'&' if '?' in found.authorization else '?'}{urlencode(query)}"

    def redeem(self, code: str, attempt: Attempt, issuer: str | None) -> ProvenPerson:
        """Return the person of an answer with a code; `issuer` is its parameter `iss`. The caller holds a place.

        Raises ProviderError, IdTokenError.
        """
        found = self._discover()
        if issuer != found.issuer and (issuer is not None or found.names_issuer):
            raise ProviderError("the answer is that of another provider")
        token = self._exchange(found, code, attempt).get("id_token")
        if not isinstance(token, str):
            raise ProviderError("the provider sent no ID token")
        return read_person(self._check(found, token, attempt), self.settings.groups_claim)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold one of the places for exchanges; wait up to WAIT_S for one. Raises BusyError if all stay taken."""
        if not self._take_place():
            raise BusyError("too many people sign in at the same time")
        try:
            yield
        finally:
            self._places.release()

    def _take_place(self) -> bool:
        """Return whether there is a place. Only MOST_WAITING wait for one."""
        if self._places.acquire(blocking=False):
            return True
        if not self._waiting.acquire(blocking=False):
            return False
        try:
            return self._places.acquire(timeout=WAIT_S)
        finally:
            self._waiting.release()

    def _known(self) -> Metadata | None:
        """Return what the provider has said of itself, if that is young."""
        return self._metadata if self._clock.monotonic() - self._metadata_at < KEPT_S else None

    def _discover(self) -> Metadata:
        """Return what the provider says of itself; what is known already, if that is young, or the provider is away."""
        if young := self._known():
            return young
        known, now = self._metadata, self._clock.monotonic()
        if now - self._failed_at < PAUSE_S:
            raise ProviderError("the provider failed a moment ago")
        try:
            known = read_metadata(fetch(self.settings.issuer + DISCOVERY), self.settings.issuer)
        except ProviderError:
            if known is None:
                self._failed_at = self._clock.monotonic()
                raise
        self._metadata, self._metadata_at = known, now
        return known

    def _exchange(self, found: Metadata, code: str, attempt: Attempt) -> dict[str, Any]:
        """Return the answer of the token endpoint."""
        client, secret = self.settings.client, self.settings.secret
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.settings.redirect_uri}
        form |= {"code_verifier": attempt.verifier}
        if secret is None or (found.methods and BASIC not in found.methods and POST in found.methods):
            return fetch(found.token, form | {"client_id": client} | ({} if secret is None else {"client_secret": secret}))
        pair = f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()
        return fetch(found.token, form, [("authorization", b"Basic " + b64encode(pair))])

    def _check(self, found: Metadata, token: str, attempt: Attempt) -> dict[str, Any]:
        """Return the claims of a token; for an unknown key the provider is asked for its keys, not too often.

        Old keys count as unknown, so that a key that the provider has withdrawn ends.
        """
        if self._clock.monotonic() - self._keys_at >= KEPT_S:
            self._keys = []
        try:
            return self._claims(found, token, attempt)
        except UnknownKeyError:
            now = self._clock.monotonic()
            if now - self._keys_at < KEYS_PAUSE_S:
                raise
            self._keys, self._keys_at = read_keys(fetch(found.keys)), now
        return self._claims(found, token, attempt)

    def _claims(self, found: Metadata, token: str, attempt: Attempt) -> dict[str, Any]:
        rules = {"issuer": found.issuer, "client": self.settings.client, "nonce": attempt.nonce}
        return check_id_token(token, self._keys, **rules, now=self._clock.now())


def read_metadata(document: Mapping[str, Any], issuer: str) -> Metadata:
    """Return what a discovery document says. Raises ProviderError for one of another issuer, and for addresses without TLS."""
    names = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
    values = [document.get(name) for name in names]
    texts = [value for value in values if isinstance(value, str) and value.isascii() and value.isprintable()]
    if len(texts) != len(names) or not all(is_safe_place(text, issuer) for text in texts):
        raise ProviderError("the discovery document lacks an address, or has one without TLS")
    if texts[0].rstrip("/") != issuer.rstrip("/"):
        raise ProviderError("the discovery document is that of another issuer")
    methods = document.get("token_endpoint_auth_methods_supported")
    listed = tuple(each for each in methods if isinstance(each, str)) if isinstance(methods, list) else ()
    named = document.get("authorization_response_iss_parameter_supported") is True
    return Metadata(texts[0], texts[1], texts[2], texts[3], listed, named)


def is_safe_place(url: str, issuer: str) -> bool:
    """Return whether secrets may go to a URL that an issuer names: by TLS, or on this machine if the issuer is there too."""
    try:
        return is_safe_origin(url) and "http" not in {url_parts(url).scheme} - {url_parts(issuer).scheme}
    except ValueError:
        return False
