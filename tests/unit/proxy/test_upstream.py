"""The question about tokens of callers: its address, its request, and which answers count, without a connection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.core.version import VERSION
from flagsvc.http.client.answers import Answer
from flagsvc.proxy import upstream
from flagsvc.proxy.upstream import SDK, Upstream, refused_token
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import asynchronous
from support.upstream_session import options

URL = "https://flags.example/base/api"
KNOWN = [{"token": "a", "type": "client", "projects": ["*"], "environment": "development"}]


@dataclass(frozen=True)
class Sent:
    """One request."""

    method: str
    url: str
    headers: Sequence[tuple[str, bytes]]
    content: bytes | None


class FakeTransport:
    """Gives one answer to every request, and keeps the requests."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.sent: list[Sent] = []
        self.is_closed = False

    async def send(
        self,
        method: str,
        url: str,
        headers: Sequence[tuple[str, bytes]],
        content: bytes | None = None,
        *,
        reads: bool = False,
    ) -> Answer:
        """Answer a request."""
        assert reads, "a question changes nothing upstream, so it may be sent twice"
        self.sent.append(Sent(method, url, headers, content))
        return self.answer

    async def aclose(self) -> None:
        """Note it."""
        self.is_closed = True


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTransport]:
    """The transport of the next session."""
    made = FakeTransport(Answer(200, {}, json.dumps({"tokens": KNOWN}).encode()))
    monkeypatch.setattr(upstream, "open_transport", lambda *_: made)
    yield made
    assert made.is_closed


async def ask(**changes: object) -> list[object]:
    """Ask about two tokens, and end the session."""
    upstream = Upstream(options(URL, **changes), clock=FakeClock(), log=RecordingLog())
    try:
        return await upstream.validate(["a", "*:development.hidden-b"])
    finally:
        await upstream.aclose()


@asynchronous
async def test_a_question(transport: FakeTransport) -> None:
    """It goes beside the API, names the tokens in its body, and has the headers that a gateway asks for."""
    assert await ask(token="", headers=[("x-gateway", "open")]) == KNOWN
    [sent] = transport.sent
    assert (sent.method, sent.url) == ("POST", "https://flags.example/base/edge/validate")
    assert json.loads(sent.content or b"") == {"tokens": ["a", "*:development.hidden-b"]}
    names = dict(sent.headers)
    assert names["x-gateway"] == b"open" and names["content-type"] == b"application/json"
    assert "authorization" not in names


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "sent without a token"), (403, "sent without a token"), (500, "500"), (404, "404")],
)
@asynchronous
async def test_a_refused_question(transport: FakeTransport, status: int, words: str) -> None:
    """The error tells what to do where something before the upstream wants credentials. It holds no token."""
    transport.answer = Answer(status, {})
    with pytest.raises(UpstreamError) as caught:
        await ask(token="")
    assert words in str(caught.value) and "hidden" not in str(caught.value)
    assert ("upstreamHeaders" in str(caught.value)) is (status in upstream.REFUSING)


@asynchronous
async def test_a_pause_is_limited(transport: FakeTransport) -> None:
    """An upstream cannot stop questions for as long as it likes."""
    transport.answer = Answer(429, {"retry-after": "86400"})
    with pytest.raises(UpstreamError) as caught:
        await ask(token="", retry_after_limit_s=60.0)
    assert caught.value.retry_after == 60.0


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"tokens": {}}', b"{", b"[" * 100_000, b"\xff"])
@asynchronous
async def test_an_answer_of_another_form(transport: FakeTransport, body: bytes) -> None:
    """It is a fault of the upstream. No token counts as unknown because of it."""
    transport.answer = Answer(200, {}, body)
    with pytest.raises(UpstreamError, match="without a list of tokens"):
        await ask(token="")


@pytest.mark.parametrize(
    ("base", "beside"),
    [
        ("https://a/api", "https://a"),
        ("https://a/proxy", "https://a"),
        ("https://a/b/api", "https://a/b"),
        ("https://a/api/api", "https://a/api"),
        ("https://a/some-api", "https://a/some-api"),
        ("https://a", "https://a"),
    ],
)
def test_the_address_beside_an_api(base: str, beside: str) -> None:
    """Only the path of the API itself is taken away, and once."""
    assert upstream.beside_api(base) == beside


def test_the_sdk_names_the_running_version() -> None:
    """`flagsvc:VERSION`."""
    assert SDK.split(":") == ["flagsvc", VERSION]


SECRET = "4f0ca3hidden9d21"


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (f"user:{SECRET}", "personal access token"),
        (f"*:*.{SECRET}", "admin token"),
        (f"*:development.{SECRET}", "backend or frontend token"),
        (f"default:production.{SECRET}", "backend or frontend token"),
        (f"[]:production.{SECRET}", "backend or frontend token"),
        (SECRET, "not look like an API token"),
        (f"some-client-{SECRET}", "not look like an API token"),
        (f'"*:development.{SECRET}"', "quotes"),
    ],
)
def test_the_form_tells_the_kind(token: str, kind: str) -> None:
    """The kind given and the kind needed are named, and nothing of the secret."""
    told = refused_token(token)
    assert kind in told and "backend token" in told
    assert "hidden" not in told and "production" not in told


def test_a_frontend_token_cannot_be_told_from_a_backend_token() -> None:
    """Both have one form, so the hint says which one is needed."""
    told = refused_token(f"*:development.{SECRET}")
    assert "frontend tokens are not accepted here" in told
