"""One authenticated session with the upstream flag server, and the names that this proxy sends there.

It knows addresses, headers and the meaning of statuses. `http/client` speaks HTTP. The requests are those of the contract
(behaviour: Towards the upstream server). They contain no data about end users (behaviour: Registration; Privacy).
"""

from __future__ import annotations

import asyncio
import json
import platform
import re
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, urlencode

from flagsvc.core.certificates import WatchedFiles
from flagsvc.core.clock import Clock
from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.core.log import Logger, describe_error
from flagsvc.core.tracing import CLIENT, TRACEPARENT, Span, Tracer, begin, child, running
from flagsvc.core.version import VERSION
from flagsvc.http.client.addresses import MOST_REDIRECTS, REDIRECTS, base_of, redirected, shown
from flagsvc.http.client.answers import Answer, Fetched, Limits, Sink, failure
from flagsvc.http.client.connection import ignore
from flagsvc.http.client.event_stream import is_event_stream
from flagsvc.http.client.outbound import Outbound
from flagsvc.http.client.sealing import sealed
from flagsvc.http.client.transport import Transport
from flagsvc.http.client.trust import Trust
from flagsvc.http.counts import Calls
from flagsvc.http.streams import EVENT_STREAM
from flagsvc.settings.network import is_gitlab

__all__ = [
    "SDK",
    "SPEC_VERSION",
    "Answer",
    "Fetched",
    "Identity",
    "Limits",
    "Outbound",
    "Trust",
    "Upstream",
    "UpstreamSettings",
    "download",
    "new_connection_id",
]


FEATURES = "/client/features"
STREAMING = "/client/streaming"
REGISTER = "/client/register"
METRICS = "/client/metrics"
VALIDATE = "/edge/validate"
API_PATHS = ("/api", "/proxy")
"""What the path of an API ends with. The route of VALIDATE is beside it, not below it."""
REFUSING = (401, 403)
"""The statuses that refuse a token."""
NO_STREAM = "the upstream offers no stream"
SILENCE_S = 45.0
"""The most seconds without a byte of a stream. Servers send a comment every 15 to 20 seconds."""
REFUSED_QUESTION = "the upstream refused a question about tokens, which is sent without a token"
MAY_NEED_HEADERS = "; if something before the upstream wants credentials, set upstreamHeaders"
Header = tuple[str, bytes]
USER_AGENT = f"flagsvc/{VERSION}"
NEEDED = "a backend token is needed (also called client token), `project:environment.secret`"
FORMS: tuple[tuple[str, str], ...] = (
    (r"\".*\"|'.*'", f"the token stands in quotes, which are sent with it: leave them out; {NEEDED}"),
    (r"user:.*", f"the token has the form of a personal access token, `user:secret`; {NEEDED}"),
    (r"\*:\*\..*", f"the token has the form of an admin token, `*:*.secret`; {NEEDED}"),
    (
        r"[^:]+:[^.:]+\..+",
        "the token has the form of a backend or frontend token: frontend tokens are not accepted here; a backend token"
        " must exist on that server",
    ),
    (r".*", f"the token does not look like an API token; it may be a client key; {NEEDED}"),
)
"""Form → description of a token with that form. The first one that fits counts."""


@dataclass(frozen=True)
class UpstreamSettings:
    """The upstream's address, and what is requested from it. Intervals are in milliseconds.

    `url` is the API address without `/client/features`; it may contain a password. `headers` are sent with every request, and the
    token in `auth_header`; an empty token is not sent. The repr contains neither `url`, token nor `headers`.
    """

    url: str = field(repr=False)
    token: str = field(repr=False)
    identity: Identity
    refresh_interval: int = 5000
    metrics_interval: int = 30000
    project: str | None = None
    name_prefix: str | None = None
    tags: Sequence[tuple[str, str]] = ()
    trust: Trust = field(default_factory=Trust)
    outbound: Outbound = field(default_factory=Outbound)
    limits: Limits = field(default_factory=Limits)
    retry_after_limit_s: float = 300.0
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    auth_header: str = "authorization"

    def filters(self) -> list[tuple[str, str]]:
        """Return the query parameters of a features request: project, namePrefix, one `tag=name:value` for each tag."""
        single = (("project", self.project), ("namePrefix", self.name_prefix))
        tags = (("tag", f"{name}:{value}") for name, value in self.tags)
        return [*((name, value) for name, value in single if value), *tags]


P = ParamSpec("P")
T = TypeVar("T")
Send = Callable[Concatenate["Upstream", P], Coroutine[Any, Any, T]]
WORKED = "ok"


def counted(request: str) -> Callable[[Send[P, T]], Send[P, T]]:
    """Count each call of a method, under the name of a request, with its time and how it ends. The call may be traced."""

    def decorate(method: Send[P, T]) -> Send[P, T]:
        @wraps(method)
        async def call(self: Upstream, /, *given: P.args, **named: P.kwargs) -> T:
            began, outcome = monotonic(), WORKED
            try:
                with running(begin(self.tracer, request)):
                    return await method(self, *given, **named)
            except UpstreamError as error:
                outcome = error.kind
                raise
            finally:
                self.calls.add(request, outcome, monotonic() - began)

        return call

    return decorate


class Upstream:
    """The upstream's client API: `get_features`, `follow_stream`, `register`, `send_metrics`. `calls` counts them.

    Every failure is an UpstreamError. Neither it nor its traceback contains the token. The address is used as it was given. If
    that answers 404 or a web page, the address with `/api` is tried once. The first address that works is kept. Without a `tracer`
    nothing is traced.
    """

    tracer: Tracer | None = None

    def __init__(self, options: UpstreamSettings, *, clock: Clock, log: Logger, tracer: Tracer | None = None) -> None:
        """Take the options. No connection is opened yet. Raises ConfigurationError for a URL or token that no request can carry."""
        self.calls = Calls()
        self.tracer = tracer
        self._options = options
        self._clock = clock
        self._log = log
        self._given = base_of(options.url)
        self._base: str | None = None
        self._proxy = options.outbound.proxy_for(self._given)
        self._token = options.token
        self._headers = common_headers(options)
        self._transport: asyncio.Task[Transport] | None = None
        self._files = WatchedFiles(options.trust.paths)

    @sealed
    @counted("features")
    async def get_features(self, etag: str | None) -> Fetched:
        """Return the configuration document, or that the document with `etag` is still current. Raises UpstreamError."""
        headers = [("unleash-interval", b"%d" % self._options.refresh_interval)]
        if etag is not None:
            headers.append(("if-none-match", header_value(etag)))
        answer, url = await self._ask("GET", self._filtered(FEATURES), headers)
        if answer.status == 304 and etag is not None:
            return Fetched(None, etag)
        if answer.status != 200 or answer.html:
            raise self._failure(answer, url)
        return Fetched(answer.body, answer.headers.get("etag"))

    @sealed
    async def follow_stream(self, last_id: str, open_sink: Callable[[], Sink]) -> None:
        """Open the stream of changes, and return when the upstream has ended it (behaviour: Following the upstream).

        `last_id` is the id of the last event, or of the document that is here; empty for none. If the upstream answers with a
        stream, `open_sink` makes what takes its bytes. Raises UpstreamError if there is no stream, or if it breaks or is silent.
        """

        def keep(status: int, headers: Mapping[str, str]) -> Sink | None:
            return open_sink() if status == 200 and is_event_stream(headers) else None

        headers = [pair for pair in self._headers if pair[0] not in ("accept", "accept-encoding")]
        headers += [("accept", EVENT_STREAM), ("accept-encoding", b"identity"), ("cache-control", b"no-store")]
        headers += [("last-event-id", header_value(last_id))] if last_id else []
        headers += self._decision()  # a stream is no piece of work with an end
        transport = await self._open()
        send = partial(transport.stream, headers=headers, keep=keep, silence_s=SILENCE_S)
        url = self._bases()[0] + self._filtered(STREAMING)
        answer = await follow(send, url)
        if answer.status != 200:
            raise self._failure(answer, url)
        if not is_event_stream(answer.headers):
            raise UpstreamError("unexpected", f"{NO_STREAM}: another kind of answer from `{shown(url)}`", status=200)

    @sealed
    @counted("registration")
    async def register(self, payload: Mapping[str, object]) -> None:
        """Send a registration. Raises UpstreamError unless the upstream accepts it."""
        await self._post(REGISTER, payload)

    @sealed
    @counted("usage")
    async def send_metrics(self, payload: Mapping[str, object]) -> None:
        """Send usage metrics. Raises UpstreamError unless the upstream accepts them."""
        await self._post(METRICS, payload)

    @sealed
    @counted("tokens")
    async def validate(self, tokens: Sequence[str]) -> list[object]:
        """Return the upstream's entries of those tokens that it knows. Raises UpstreamError.

        The request carries no token of its own, even if the session has one: the real server refuses it here.
        """
        content = json.dumps({"tokens": list(tokens)}).encode()
        own = [header for header in self._headers if header[0] != self._options.auth_header or not self._token]
        transport, url = await self._open(), beside_api(self._bases()[0]) + VALIDATE
        headers = [*own, ("content-type", b"application/json")]
        answer = await self._send(transport, VALIDATE, "POST", url, headers=headers, content=content, reads=True)
        if not answer.worked:
            reason, hint = (REFUSED_QUESTION, MAY_NEED_HEADERS) if answer.status in REFUSING else ("", "")
            raise self._limited(failure(answer, shown(url), self._clock.now(), hint, reason=reason))
        return read_validated(answer, url)

    async def aclose(self) -> None:
        made, self._transport = self._transport, None
        if made is not None:
            await asyncio.wait([made])
            if not broken(made):
                await made.result().aclose()

    def renew(self, token: str) -> bool:
        """Use this token from the next request on. Returns whether the token is new."""
        headers = common_headers(replace(self._options, token=token))
        self._token = token
        before, self._headers = self._headers, headers
        return headers != before

    def _filtered(self, path: str) -> str:
        """Return the path with the filters as its query, if there are any."""
        query = urlencode(self._options.filters(), quote_via=quote, safe="")
        return f"{path}?{query}" if query else path

    async def _post(self, path: str, payload: Mapping[str, object]) -> None:
        content = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        headers = [("unleash-interval", b"%d" % self._options.metrics_interval), ("content-type", b"application/json")]
        answer, url = await self._ask("POST", path, headers, content)
        if not answer.worked:
            raise self._failure(answer, url)

    def _failure(self, answer: Answer, url: str) -> UpstreamError:
        """Return the error for an answer.

        Some flag servers answer 403 outside of their API. So the message of a 403 may say that the address lacks `/api`.
        """
        doubted = answer.status == 403 and len(self._bases()) > 1
        hint = f"; {refused_token(self._token)}" if answer.status in REFUSING else ""
        hint += "; if the token is right, the address may lack `/api`" if doubted else ""
        return self._limited(failure(answer, shown(url), self._clock.now(), hint))

    def _limited(self, error: UpstreamError) -> UpstreamError:
        """Limit the pause that an answer asks for: a page for maintenance must not stop updates for as long as it likes."""
        if error.retry_after is not None:
            error.retry_after = min(error.retry_after, self._options.retry_after_limit_s)
        return error

    async def _ask(self, method: str, path: str, headers: Sequence[Header], content: bytes | None = None) -> tuple[Answer, str]:
        """Return the answer and its base address, and keep the address that works."""
        transport, every = await self._open(), [*self._headers, *headers]
        for base in self._bases():
            url, send = base + path, partial(self._send, transport, path, method, headers=every, content=content)
            answer = await follow(send, url, MOST_REDIRECTS if method == "GET" else 0)
            if not answer.astray:
                break
        if answer.worked and self._base is None:
            self._settle(base)
        return answer, url

    async def _send(
        self,
        transport: Transport,
        path: str,
        method: str,
        url: str,
        *,
        headers: Sequence[Header],
        content: bytes | None,
        reads: bool = False,
    ) -> Answer:
        """Send one request and return its answer, as a span of the present trace."""
        template = path.partition("?")[0]
        with running(child(f"{method} {template}", CLIENT)) as span:
            if span is not None:
                span.attributes = {"http.request.method": method, "url.template": template}
            answer = await transport.send(method, url, [*headers, *self._decision(span)], content, reads=reads)
            if span is not None:
                span.note_status(answer.status, 400)
            return answer

    def _decision(self, span: Span | None = None) -> list[Header]:
        """Return the header that tells the upstream whether a request is traced, and as part of what; none without a tracer."""
        if span is not None:
            return [(TRACEPARENT, span.traceparent)]
        return [] if self.tracer is None else [(TRACEPARENT, self.tracer.refusal())]

    def _bases(self) -> tuple[str, ...]:
        """Return the base addresses to try, the more likely one first."""
        if self._base is not None:
            return (self._base,)
        is_known = self._given.endswith("/api") or is_gitlab(self._given)
        return (self._given,) if is_known else (self._given, f"{self._given}/api")

    def _settle(self, base: str) -> None:
        self._base = base
        write = self._log.info if base == self._given else self._log.warn
        write("the upstream answers", url=base)

    async def _open(self) -> Transport:
        """Return the transport. The first call makes it in a thread, because reading the trusted authorities takes time."""
        if self._transport is None or broken(self._transport):
            self._transport = self._make()
        elif self._files.detect_change():
            await self._renew(self._transport)
        return await asyncio.shield(self._transport)

    def _make(self) -> asyncio.Task[Transport]:
        options = self._options
        making = asyncio.to_thread(open_transport, self._given, self._proxy, options.trust, options.limits, self.calls.receive)
        return asyncio.create_task(making)

    async def _renew(self, old: asyncio.Task[Transport]) -> None:
        """Connect with new certificates. If they cannot be used, keep the former certificates."""
        making = self._make()
        await asyncio.wait([making])
        failure = making.exception()
        if failure is not None:
            self._log.error("the new certificates towards the upstream are refused", error=describe_error(failure))
            return
        self._transport = making
        self._log.info("certificates towards the upstream read again")
        await asyncio.wait([old])
        if not broken(old):
            await old.result().aclose()


def broken(making: asyncio.Task[Transport]) -> bool:
    """Return whether making a transport has failed.

    An event loop that ends cancels the task. The last usage metrics are sent later and need a new transport.
    """
    return making.cancelling() > 0 or (making.done() and making.exception() is not None)


def beside_api(base: str) -> str:
    """Return the address that the path of an API is below. A base path before that may have the same name."""
    for path in API_PATHS:
        if base.endswith(path):
            return base.removesuffix(path)
    return base


def read_validated(answer: Answer, url: str) -> list[object]:
    """Return the entries of an answer about tokens. Raises UpstreamError if it has another form."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        found = None
    told = found.get("tokens") if isinstance(found, dict) else None
    if not isinstance(told, list):
        raise UpstreamError("unexpected", f"{shown(url)} answered without a list of tokens")
    return told


async def follow(send: Callable[[str], Awaitable[Answer]], url: str, most: int = MOST_REDIRECTS) -> Answer:
    """Send a request and return the answer. At most so many redirects within the same origin are followed.

    Any other redirect would send the token to another server, so it raises UpstreamError of kind `unexpected`. A POST is never
    redirected.
    """
    answer = await send(url)
    for _ in range(most):
        if answer.status not in REDIRECTS:
            break
        url = redirected(url, answer)
        answer = await send(url)
    return answer


@sealed
async def download(url: str, *, authorization: str | None, trust: Trust, outbound: Outbound, clock: Clock) -> bytes:
    """Return the body of one GET of `url`. Raises UpstreamError, and ConfigurationError for a URL that is not http.

    `authorization` is the value of an Authorization header (specification: Experimental options).
    """
    proxy = outbound.proxy_for(base_of(url))
    transport = await asyncio.to_thread(open_transport, url, proxy, trust, Limits())
    headers = [("accept", b"application/json"), ("accept-encoding", b"gzip"), ("user-agent", USER_AGENT.encode())]
    if authorization:
        headers.append(("authorization", header_value(authorization)))
    try:
        answer = await follow(partial(transport.send, "GET", headers=headers), url)
    finally:
        await transport.aclose()
    if answer.status != 200 or answer.html:
        raise failure(answer, shown(url), clock.now())
    return answer.body


def open_transport(
    url: str, proxy: str | None, trust: Trust, limits: Limits, receive: Callable[[int], object] = ignore
) -> Transport:
    """Return the connections to the origin of `url`, which tell `receive` the number of bytes that arrive.

    For https it reads the trusted authorities, so call it in a thread.
    """
    return Transport(shown(url), proxy=proxy, trust=trust, limits=limits, receive=receive)


def common_headers(options: UpstreamSettings) -> list[Header]:
    """Return the headers of every request. Raises ConfigurationError if a request cannot carry them."""
    token, identity = options.token, options.identity
    if any(ord(character) < 32 or ord(character) == 127 for character in token):
        raise ConfigurationError(["flagsvcApiToken: holds a control character, which no HTTP header can carry"])
    if token and options.auth_header in dict(options.headers):
        name = options.auth_header
        raise ConfigurationError([f"upstreamHeaders: `{name}` carries flagsvcApiToken; set upstreamAuthHeader to another name"])
    return [
        *([(options.auth_header, token.encode())] if token else []),
        ("accept", b"application/json"),
        ("accept-encoding", b"gzip"),
        ("user-agent", USER_AGENT.encode()),
        ("unleash-appname", header_value(identity.app_name)),
        ("unleash-instanceid", header_value(identity.instance_id)),
        ("unleash-connection-id", header_value(identity.connection_id)),
        ("unleash-sdk", SDK.encode()),
        ("unleash-client-spec", SPEC_VERSION.encode()),
        *((name, header_value(value)) for name, value in options.headers),
    ]


def header_value(text: str) -> bytes:
    """Return a text as a header value: UTF-8, without control characters, and without blanks at the ends."""
    return "".join(character if character.isprintable() else " " for character in text).strip().encode("utf-8", "replace")


def refused_token(token: str) -> str:
    """Return a description of the kind of a token, and the kind that the upstream's client API accepts."""
    return next(text for form, text in FORMS if re.fullmatch(form, token.strip(), re.DOTALL))


SDK = f"flagsvc:{VERSION}"
"""Our name and version: the `unleash-sdk` header and the `sdkVersion` field."""
SPEC_VERSION = "6.1.0"
"""The version of the client specification that this proxy passes."""


def new_connection_id() -> str:
    """Return a new id of one running proxy; a UUID."""
    return str(uuid.uuid4())


@dataclass(frozen=True)
class Identity:
    """The names of a proxy: application, instance, and a connection id that is new with each start."""

    app_name: str
    instance_id: str
    connection_id: str = field(default_factory=new_connection_id)

    def fields(self) -> dict[str, object]:
        return {
            "appName": self.app_name,
            "instanceId": self.instance_id,
            "connectionId": self.connection_id,
            "platformName": platform.python_implementation(),
            "platformVersion": platform.python_version(),
            "yggdrasilVersion": None,
            "specVersion": SPEC_VERSION,
        }
