"""The same requests to our flag server and to npm's unleash-server: the checks before a handler give the same answers."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from support import processes
from support.flagservers import our_flag_server
from support.processes import ADMIN_TOKEN, FRONTEND_TOKEN, UPSTREAM_TOKEN

JSON = "application/json"
SWITCH = "/api/admin/maintenance"
FEATURES = "/api/client/features"
VALIDATE = "/edge/validate"
ADMIN = {"Authorization": ADMIN_TOKEN}
CLIENT = {"Authorization": UPSTREAM_TOKEN}
OFF = b'{"enabled":false}'


class Ask(NamedTuple):
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None = None


def post(body: bytes | None, media: str | None = JSON, **more: str) -> Ask:
    """Return a POST of an administrator."""
    headers = ADMIN | ({} if media is None else {"Content-Type": media})
    return Ask("POST", SWITCH, headers | {name.replace("_", "-"): value for name, value in more.items()}, body)


def with_token(token: str, path: str = SWITCH) -> Ask:
    """Return a GET with a token."""
    return Ask("GET", path, {"Authorization": token})


def question(body: object, path: str = VALIDATE, **headers: str) -> Ask:
    """Return a question about tokens, asked without a key."""
    return Ask("POST", path, {"Content-Type": JSON, **headers}, json.dumps(body).encode())


SAME = {
    "a change": post(OFF),
    "a coerced change": post(b'{"enabled":0}'),
    "no member": post(b"{}"),
    "a wrong member": post(b'{"enabled":"perhaps"}'),
    "an empty body": post(b""),
    "no body": post(None),
    "no body and no type": post(None, None),
    "null": post(b"null"),
    "a text": post(b'"x"'),
    "a list": post(b"[]"),
    "not JSON": post(b"{"),
    "blank": post(b"  "),
    "no type": post(OFF, None),
    "an empty type": post(OFF, ""),
    "text": post(OFF, "text/plain"),
    "text/json": post(OFF, "text/json"),
    "problem": post(OFF, "application/problem+json"),
    "two types": post(OFF, "application/json, text/plain"),
    "an odd type": post(b"{", "nonsense"),
    "upper case": post(OFF, "Application/JSON; Charset=UTF-8"),
    "latin": post(OFF, "application/json; charset=iso-8859-1"),
    "utf-9": post(OFF, "application/json; charset=utf-9"),
    "utf-16": post(OFF.decode().encode("utf-16-le"), "application/json; charset=utf-16"),
    "utf-16le": post(OFF.decode().encode("utf-16-le"), 'application/json; charset="utf-16le"'),
    "mark": post(b"\xef\xbb\xbf" + OFF),
    "not utf-8": post(b'{"enabled":false,"x":"\xff"}'),
    "proto": post(b'{"enabled":false,"__proto__":{"enabled":true}}'),
    "a key twice": post(b'{"enabled":"perhaps","enabled":false}'),
    "gzip": post(gzip.compress(OFF), Content_Encoding="gzip"),
    "gzip of two": post(gzip.compress(OFF[:5]) + gzip.compress(OFF[5:]), Content_Encoding="GZIP"),
    "no gzip": post(OFF, Content_Encoding="gzip"),
    "half a gzip": post(gzip.compress(OFF * 50)[:-9], Content_Encoding="gzip"),
    "more than gzip": post(gzip.compress(OFF) + b"junk", Content_Encoding="gzip"),
    "an empty gzip": post(b"", Content_Encoding="gzip"),
    "identity": post(OFF, Content_Encoding="identity"),
    "zstd": post(OFF, Content_Encoding="zstd"),
    "br": post(OFF, Content_Encoding="br"),
    "over the limit": post(b" " * (512_001 - len(OFF)) + OFF),
    "over the limit, packed": post(gzip.compress(b" " * 600_000 + OFF), Content_Encoding="gzip"),
    "over the limit, as text": post(b" " * 600_000, "text/plain"),
    "nobody": Ask("POST", SWITCH, {"Content-Type": JSON}, b"{}"),
    "nobody, an odd type": Ask("POST", SWITCH, {"Content-Type": "text/plain"}, b"{}"),
    "a GET that is not JSON": Ask("GET", SWITCH, ADMIN | {"Content-Type": JSON}, b"{"),
    "a client": with_token(UPSTREAM_TOKEN),
    "unknown": with_token("*:*.nobody"),
    "unknown user": with_token("user:nobody"),
    "empty": with_token(""),
    "basic": with_token("Basic eDp5"),
    "bearer": with_token(f"Bearer {ADMIN_TOKEN}"),
    "bearer with space": with_token(f"bearer \t {ADMIN_TOKEN}"),
    "bearer twice": with_token(f"Bearer Bearer {ADMIN_TOKEN}"),
    "bearer alone": with_token("Bearer"),
    "client API, nobody": Ask("GET", FEATURES, {}),
    "client API, unknown": with_token("*:development.nobody", FEATURES),
    "client API, unknown user": with_token("user:nobody", FEATURES),
    "client API, bearer": with_token(f"Bearer {UPSTREAM_TOKEN}", FEATURES),
    "client API, no path": with_token(UPSTREAM_TOKEN, "/api/client/nosuch"),
    "client API, no path, nobody": Ask("GET", "/api/client/nosuch", {}),
    "no path": with_token(ADMIN_TOKEN, "/api/admin/nosuch?x=1"),
    "no path, nobody": Ask("GET", "/api/admin/nosuch", {}),
    "no path, a client": with_token(UPSTREAM_TOKEN, "/api/admin/nosuch"),
    "no path, slashes": with_token(ADMIN_TOKEN, "/api//Admin///nosuch/"),
    "no path, escapes": with_token(ADMIN_TOKEN, "/api/admin/maintenanc%65"),
    "no path, dots": with_token(ADMIN_TOKEN, "/api/admin/./maintenance"),
    "letter case": with_token(ADMIN_TOKEN, "/API/Admin/MAINTENANCE"),
    "slashes": with_token(ADMIN_TOKEN, "//api//admin/maintenance//"),
    "query": with_token(ADMIN_TOKEN, f"{SWITCH}?a=%zz&b[]=1"),
    "OPTIONS": Ask("OPTIONS", SWITCH, ADMIN),
    "OPTIONS, nobody": Ask("OPTIONS", SWITCH, {}),
    "OPTIONS, a client": Ask("OPTIONS", SWITCH, CLIENT),
    "OPTIONS, no path": Ask("OPTIONS", "/api/admin/nosuch", ADMIN),
    "HEAD": Ask("HEAD", SWITCH, ADMIN),
    "HEAD, no path": Ask("HEAD", "/api/admin/nosuch", ADMIN),
    "the same again": Ask("GET", SWITCH, ADMIN | {"If-None-Match": "*"}),
    "health": Ask("GET", "/health", {}),
    "health, HEAD": Ask("HEAD", "/Health/", {}),
    "health, OPTIONS": Ask("OPTIONS", "/health", {}),
    "health, unknown": with_token("*:*.nobody", "/health"),
    "ready": Ask("GET", "/ready", {}),
    "question, no member": question({}),
    "question, a list": question([]),
    "question, null": question(None),
    "question, a text for the list": question({"tokens": "x"}),
    "question, an object for a token": question({"tokens": ["x", {}]}),
    "question, text": Ask("POST", VALIDATE, {"Content-Type": "text/plain"}, b'{"tokens":[]}'),
    "question, not JSON": Ask("POST", VALIDATE, {"Content-Type": JSON}, b"{"),
    "question, over the limit": question({"tokens": ["x" * 102_400]}),
    "question, an unknown token besides": question({"tokens": []}, Authorization="*:*.nobody"),
    "question, OPTIONS": Ask("OPTIONS", VALIDATE, {}),
}

OURS: dict[str, tuple[Ask, int, int]] = {
    "nobody, not JSON": (Ask("POST", SWITCH, {"Content-Type": JSON}, b"{"), 400, 401),
    "a known path with another method": (Ask("PUT", SWITCH, ADMIN | {"Content-Type": JSON}, OFF), 404, 405),
    "HEAD of a POST": (Ask("HEAD", "/api/client/register", CLIENT), 404, 405),
    "health with a token of clients": (Ask("GET", "/health", CLIENT), 403, 200),
    "an unknown path outside the API": (Ask("GET", "/nosuch", {}), 200, 404),
    "an admin token on the client API": (with_token(ADMIN_TOKEN, FEATURES), 200, 403),
    "an empty parameter of the media type": (post(OFF, "application/json;"), 400, 204),
    "an odd parameter of the media type": (post(OFF, "application/json; ;;odd"), 400, 204),
    "an empty charset": (post(OFF, "application/json; charset="), 400, 204),
    "a question about tokens with a token of clients": (question({"tokens": []}, **CLIENT), 403, 200),
    "a question about more than 100 tokens": (question({"tokens": ["x"] * 101}), 200, 400),
    "more than 100 kB, but for a batch": (post(b" " * (512_000 - len(OFF)) + OFF), 413, 204),
}
"""Where ours differs on purpose: the real server's status, and ours. It reads no body whose media type it cannot take apart."""


WORDS = "words"
OWN_WORDS = {401: ("message", "details", "path"), 503: ("message",)}
"""Fields of an error that say the same in words of our own, by status: they are compared by name only."""


class Seen(NamedTuple):
    """What an answer is compared by; `error` is the fields of an error, in their order, without its id and our own words."""

    status: int
    allow: str | None
    media: str
    error: list[tuple[str, Any]]


def ask(root: str, request: Ask) -> Seen:
    """Send a request and return what its answer is compared by."""
    parts = urlsplit(root)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    with closing(connection):
        connection.putrequest(request.method, request.path, skip_accept_encoding=True)
        for name, value in request.headers.items():
            connection.putheader(name, value)
        if request.body is not None:
            connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        response = connection.getresponse()
        return seen(response, response.read())


def own_words(status: int, name: str) -> bool:
    """Return whether a field of an error has our own text: the remedy of a 401, the message of a 503."""
    return name in OWN_WORDS.get(status, ())


def seen(response: http.client.HTTPResponse, body: bytes) -> Seen:
    """Return what an answer is compared by. In development the real server's parser answers with a page, in production in JSON."""
    media = response.getheader("Content-Type") or ""
    error: list[tuple[str, Any]] = []
    if response.status >= 400 and media.startswith(JSON) and body:
        fields = {name: value for name, value in json.loads(body).items() if name != "id"}
        error = [(name, WORDS if own_words(response.status, name) else value) for name, value in fields.items()]
    only_message = len(error) == 1 or (response.status >= 400 and media.startswith("text/html"))
    if only_message and response.status in (400, 413, 415):
        return Seen(response.status, None, "of the parser", [])
    return Seen(response.status, response.getheader("Allow"), media, error)


@pytest.fixture(scope="module")
def roots() -> Iterator[tuple[str, str]]:
    """Give the addresses of the real server and of ours, with the same tokens."""
    kinds = {"admin": ADMIN_TOKEN, "backend": UPSTREAM_TOKEN, "frontend": FRONTEND_TOKEN}
    tokens = [{"type": kind, "secret": secret} for kind, secret in kinds.items()]
    with (
        processes.postgresql() as database,
        processes.unleash_server(database) as real,
        our_flag_server(given={"tokens": tokens}) as ours,
    ):
        yield real.url.removesuffix("/api"), ours.root


@pytest.mark.parametrize("name", SAME)
def test_both_answer_alike(roots: tuple[str, str], name: str) -> None:
    """Status, media type, `Allow`, and every field of an error but its id."""
    real, ours = (ask(root, SAME[name]) for root in roots)
    assert ours == real


@pytest.mark.parametrize("name", OURS)
def test_ours_differs_on_purpose(roots: tuple[str, str], name: str) -> None:
    """A difference that is gone on the real server's side shows here."""
    request, real, ours = OURS[name]
    assert tuple(ask(root, request).status for root in roots) == (real, ours)


QUESTIONS: dict[str, list[Any]] = {
    "none": [],
    "all": [ADMIN_TOKEN, UPSTREAM_TOKEN, FRONTEND_TOKEN],
    "unknown": ["", "nobody", f"{UPSTREAM_TOKEN} ", UPSTREAM_TOKEN.upper(), UPSTREAM_TOKEN, 7, None, "user:nobody"],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_know_the_same_tokens(roots: tuple[str, str], name: str) -> None:
    """The known tokens come with the same fields and values; unknown ones are left out."""
    for path in (VALIDATE, "//Edge/Validate/"):
        real, ours = (processes.ask(root + path, method="POST", body={"tokens": QUESTIONS[name]}) for root in roots)
        assert (ours.status, ours.json()) == (real.status, real.json()) and real.status == 200
