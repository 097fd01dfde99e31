"""An OpenID provider on loopback: discovery, keys that rotate, codes with PKCE, and ID tokens as a test wants them."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from joserfc import jws
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from support.http_servers import Reply, Request, http_server, json_reply

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
