"""An OpenID provider on loopback: discovery, keys that rotate, codes with PKCE, and ID tokens as a test wants them.

The scene is a flag server with such a provider, where people sign in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from joserfc import jws
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from flagsvc.server.sign_in.provider import Provider, ProviderSettings
from flagsvc.server.sign_in.ways import CALLBACK, SignInWays
from flagsvc.server.store.resources import users
from flagsvc.settings.roles import GroupRoles
from flagsvc.testing import FakeClock
from support import processes
from support.flagservers import AppClient, app_client
from support.http_servers import Reply, Request, http_server, json_reply
from support.page_forms import COOKIE, Visitor

CLIENT, SECRET = "flags & co", "s3cret:of/the client"
ADA: dict[str, Any] = {"sub": "a-1", "email": "ada@flags.example", "email_verified": True, "name": "Ada", "groups": ["devs"]}
"""The claims of a person."""
MAKERS: dict[str, Callable[[str], Key]] = {
    "RS256": lambda name: RSAKey.generate_key(2048, {"kid": name}),
    "PS256": lambda name: RSAKey.generate_key(2048, {"kid": name}),
    "ES256": lambda name: ECKey.generate_key("P-256", {"kid": name}),
    "EdDSA": lambda name: OKPKey.generate_key("Ed25519", {"kid": name}),
}
Forge = Callable[[dict[str, Any]], str]
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "users": [
        {"name": "ben", "email": "ben@flags.example", "rootRole": "viewer"},
        {"name": "chief", "email": "chief@flags.example", "rootRole": "admin"},
    ],
}


class TestProvider:
    """A provider. `claims` are those of the next tokens, `forge` makes them if it is set, and `asked` counts requests by path."""

    __test__ = False

    def __init__(self) -> None:
        self.issuer = ""
        self.claims = dict(ADA)
        self.forge: Forge | None = None
        self.broken = ""
        self.more: dict[str, Any] = {}
        self.asked: dict[str, int] = {}
        self.algorithm = "ES256"
        self.now = time.time
        self._codes: dict[str, dict[str, str]] = {}
        self.rotate("first")

    def rotate(self, name: str, algorithm: str = "ES256") -> None:
        """Sign with a new key, and forget the old one."""
        self.algorithm = algorithm
        self.key = MAKERS[algorithm](name)

    def sign_in(self, address: str, **claims: Any) -> str:
        """Sign a person in at the address that a server has sent a browser to. Returns the query of the answer."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert query["response_type"] == "code" and query["code_challenge_method"] == "S256" and query["client_id"] == CLIENT
        self.claims |= claims
        code = f"code-{len(self._codes)}"
        self._codes[code] = query
        return urlencode({"code": code, "state": query["state"], "iss": self.issuer})

    def answer(self, request: Request) -> Reply:
        """Answer a browser, or a server."""
        if request.path == "/authorize":
            place = f"{dict(request.query)['redirect_uri']}?{self.sign_in(request.target)}"
            return Reply(302, headers={"location": place})
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        status, value = self.respond(request.target, form, request.headers.get("authorization", ""))
        return json_reply(value, status)

    def respond(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        """Return status and JSON of an answer."""
        self.asked[path] = self.asked.get(path, 0) + 1
        if path == self.broken:
            return 500, {"error": SECRET}
        if path == "/.well-known/openid-configuration":
            return 200, self.describe()
        if path == "/keys":
            return 200, {"keys": [self.key.as_dict(private=False), {"kty": "oct", "k": "YQ"}, {"kty": "RSA"}, 5]}
        return self.redeem(form, authorization) if path == "/token" else (404, {})

    def describe(self) -> dict[str, Any]:
        places = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        return {"issuer": self.issuer, **{name: self.issuer + path for name, path in places.items()}, **self.more}

    def redeem(self, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        """Return the tokens of a code, once, for the client that has asked for it."""
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        known = [unquote(each) for each in pair] == [CLIENT, SECRET] or form.get("client_secret") == SECRET
        asked = self._codes.pop(form.get("code", ""), None)
        if not known or asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(self.now())
        facts = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"], **self.claims}
        claims = {name: value for name, value in facts.items() if value is not None}
        return 200, {"access_token": "unused", "token_type": "Bearer", "id_token": (self.forge or self.sign)(claims)}

    def sign(self, claims: dict[str, Any]) -> str:
        header = {"alg": self.algorithm, "kid": self.key.kid}
        with warnings.catch_warnings(action="ignore"):  # of EdDSA, which has a new name that providers do not use yet
            return jws.serialize_compact(header, json.dumps(claims), self.key, algorithms=[self.algorithm])


@contextmanager
def running_provider() -> Iterator[TestProvider]:
    """Run a provider on a free port of loopback until the block ends."""

    provider = TestProvider()
    with http_server(provider.answer) as provider.issuer:
        yield provider


RULES = (("flag-admins", "admin"), ("devs", "editor"), ("shop", "member:shop"))
URL = "http://127.0.0.1:4242"


@dataclass
class Scene:
    """A flag server with a provider, and a clock for both."""

    client: AppClient
    provider: TestProvider
    clock: FakeClock

    def leave(self, visitor: Visitor, goal: str = "/try") -> str:
        """Begin to sign in, and return the address at the provider. The cookie is kept."""
        answer = visitor.see(f"/sign-in/provider?next={goal}")
        assert answer.status == 303, answer.text
        keep(visitor, answer)
        return answer.headers["location"]

    def come_back(self, visitor: Visitor, query: str) -> processes.Answer:
        """Come back with the query of an answer."""
        answer = visitor.see(f"/sign-in/callback?{query}")
        if answer.status == 303:
            keep(visitor, answer)
        return answer

    def sign_in(self, visitor: Visitor | None = None, **claims: Any) -> processes.Answer:
        """Go the whole way, and return the last answer."""
        visitor = visitor or Visitor(self.client, None)
        return self.come_back(visitor, self.provider.sign_in(self.leave(visitor), **claims))

    def role_of(self, name: str) -> tuple[str, list[str]]:
        """Return the root role of a user, and the projects with a role."""
        with self.client.server.store.reading() as tx:
            found = next(each for each in users.list_with_roles(tx) if name in (each["user"], each["email"]))
        return found["role"], [each["project"] for each in found["projectRoles"]]


def keep(visitor: Visitor, answer: processes.Answer) -> None:
    """Keep the first cookie of an answer. After the way back it is the cookie of the session."""
    found = COOKIE.match(answer.headers.get("set-cookie", ""))
    assert found is not None
    visitor.cookie = f"{found[1]}={found[2]}"


def settings_of(provider: TestProvider, **given: Any) -> ProviderSettings:
    return ProviderSettings(provider.issuer, CLIENT, f"{URL}{CALLBACK}", SECRET)._replace(**given)


@contextmanager
def provider_scene(database_url: str, rules: GroupRoles = RULES) -> Iterator[Scene]:
    """Give a server with a provider and rules for groups."""
    clock = FakeClock()
    with running_provider() as provider:
        provider.now = clock.now
        ways = SignInWays(group_roles=rules, provider=Provider(settings_of(provider), clock))
        with app_client(database_url, given=GIVEN, clock=clock, url=URL, ways=ways) as client:
            yield Scene(client, provider, clock)
