"""Another dialect is one module and its row: here it is a module of tests."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from flagsvc.engine.context import Context
from flagsvc.engine.features import Toggle, ToggleOutcome
from flagsvc.engine.fragments import PLAIN, AnswerShape
from flagsvc.http.messages import Headers, HttpError
from flagsvc.proxy.api.client import Register
from flagsvc.proxy.api.dialects import DIALECTS, routes_of
from flagsvc.proxy.api.evaluation import Listing, Lookup
from flagsvc.proxy.api.query import ContextLimits
from flagsvc.proxy.api.route import Auth, Dialect, Limit, ProxyRoute
from flagsvc.proxy.api.schemas import LOOKUP
from flagsvc.proxy.api.wire_format import WireFormat
from support.serving import FakeSnapshot, Serving


class ShoutedShape(AnswerShape):
    """Toggles in capitals."""

    def fragment(self, outcome: ToggleOutcome, toggle: Toggle | None) -> bytes:
        """Return the toggle in capitals."""
        return outcome.fragment.upper()


class ShapedSnapshot(FakeSnapshot):
    """A snapshot that knows shapes."""

    def enabled(self, context: Context, shape: AnswerShape = PLAIN) -> bytes:
        """Return the body in the shape."""
        return shape.fragment(ToggleOutcome(True, None, super().enabled(context)), None)


class ShoutedFormat(WireFormat):
    """Users are in capitals, and so are errors."""

    def __init__(self, shape: AnswerShape) -> None:
        super().__init__(b"no-cache", b"no-store", (), shape)
        self.reads_bearer = True

    def read_query(self, query: bytes, limits: ContextLimits) -> Context:
        """Return a context of one user."""
        context = Context()
        context.user_id = query.decode().upper()
        return context

    def error_body(self, refused: HttpError, key_header: str) -> bytes:
        """Return a message in capitals."""
        return json.dumps({"MESSAGE": refused.message.upper()}).encode()


SHOUTED = Dialect(
    name="shouted",
    prefixes=("/shouted",),
    wire_format=ShoutedFormat(ShoutedShape(b"shouted")),
    routes=(
        ProxyRoute(path="/shouted", handler="list", summary="List", auth=Auth.CLIENT, tag="evaluation"),
        ProxyRoute(
            path="/shouted/one",
            method="POST",
            handler="one",
            summary="One",
            body=LOOKUP,
            limit=Limit.BODY,
            tag="clients",
        ),
        ProxyRoute(path="/shouted/register", method="POST", handler="register", summary="Register", tag="clients"),
    ),
    handlers={
        "list": lambda parts: Listing(parts.evaluator, False),
        "one": lambda parts: Lookup(parts.evaluator, False),
        "register": lambda parts: Register(parts.answers),
    },
)
BOTH = (*DIALECTS, SHOUTED)
BEARER: Headers = [(b"authorization", b"Bearer k")]


@pytest.fixture(name="serving")
def _serving() -> Serving:
    """Return a service that speaks the other dialect too."""
    return Serving(ShapedSnapshot(), dialects=BOTH, key=b"")


def test_the_rows_of_a_dialect_stand_before_the_operations() -> None:
    """The first page is the first row, then come the dialects in their order."""
    paths = [row.path for row in routes_of(BOTH)]
    assert paths[0] == "/"
    assert paths.index("/proxy") < paths.index("/shouted") < paths.index("/proxy/health")


def test_a_dialect_reads_keys_and_contexts_in_its_own_way(serving: Serving) -> None:
    """The engine gets what the dialect read, and the answer has the dialect's headers."""
    answer = serving.ask(b"GET", b"/shouted", b"anna", BEARER)
    assert (answer.status, answer.body) == (200, b'{"TOGGLES":[]}')
    assert [context.user_id for context in serving.snapshot.contexts] == ["ANNA"]
    assert dict(answer.headers())[b"cache-control"] == b"no-cache"
    for key, status in ((b"k", 200), (b"bearer  k", 200), (b"Bearer x", 401), (b"Basic k", 401)):
        assert serving.ask(b"GET", b"/shouted", b"anna", [(b"authorization", key)]).status == status


def test_the_other_dialects_stay_as_they_are(serving: Serving) -> None:
    """Keys, headers and errors of `/proxy` do not change with another dialect beside it."""
    assert serving.ask(b"GET", b"/proxy", b"userId=anna", BEARER).body == b"Unauthorized"
    answer = serving.ask(b"GET", b"/proxy", b"userId=anna", [(b"authorization", b"k")])
    assert dict(answer.headers())[b"cache-control"] == b"public, max-age=2"
    assert serving.ask(b"GET", b"/shoutedx").body == b'{"error":"there is nothing at `/shoutedx`"}'


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        (b"GET", b"/shouted", 401),
        (b"GET", b"/Shouted/nothing", 404),
        (b"DELETE", b"/shouted", 405),
        (b"POST", b"/shouted/register", 400),
    ],
)
def test_errors_of_a_dialect_have_its_form(serving: Serving, method: bytes, path: bytes, status: int) -> None:
    """Every path below the prefix has it, also one without a route."""
    answer = serving.ask(method, path)
    assert answer.status == status
    (message,) = json.loads(answer.body).values()
    assert json.loads(answer.body) == {"MESSAGE": message.upper()}


def test_a_form_inherits_what_it_does_not_override(serving: Serving) -> None:
    """A POST is read as at `/proxy`."""
    body = json.dumps({"context": {"userId": "anna"}}).encode()
    answer = serving.ask(b"POST", b"/shouted/one", headers=[(b"content-length", b"1")], body=body)
    assert answer.status == 200
    assert [context.user_id for context in serving.snapshot.contexts] == ["anna"]


@pytest.mark.parametrize("condition", [None, b"*"])
def test_answers_of_another_shape_are_kept_apart(condition: bytes | None) -> None:
    """The cache and the entity tags tell the shapes of two dialects apart, for the same context."""
    serving = Serving(ShapedSnapshot(b'{"toggles":["a"]}'), dialects=BOTH, key=b"")
    headers: Headers = [] if condition is None else [(b"if-none-match", condition)]
    found = [
        serving.ask(b"GET", path, query, [(b"authorization", key), *headers])
        for _ in range(3)
        for path, query, key in ((b"/proxy", b"userId=ANNA", b"k"), (b"/shouted", b"anna", b"Bearer k"))
    ]
    bodies = {(answer.body, dict(answer.own)[b"etag"]) for answer in found}
    assert len(bodies) == 2
    if condition is None:
        assert {body for body, _ in bodies} == {b'{"toggles":["a"]}', b'{"TOGGLES":["A"]}'}
        assert len(serving.snapshot.contexts) == 4, "the third requests are answered from the cache"


def test_dialects_of_one_shape_share_the_cache() -> None:
    """An answer that one dialect kept is found by another, because the canonical bytes are equal."""
    plain = replace(SHOUTED, wire_format=ShoutedFormat(PLAIN))
    serving = Serving(dialects=(*DIALECTS, plain), key=b"")
    for _ in range(2):
        serving.ask(b"GET", b"/proxy", b"userId=ANNA", [(b"authorization", b"k")])
    asked = len(serving.snapshot.contexts)
    assert serving.ask(b"GET", b"/shouted", b"anna", BEARER).status == 200
    assert len(serving.snapshot.contexts) == asked
