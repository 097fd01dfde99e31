"""What server-side SDKs and other proxies send to `/api/client` (dialects: Server-side API of the proxy).

What an application reports goes upstream under its own name and instance.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, cast

import msgspec

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.client_query import FILTERS, find_problems, knows_segments, read_query, split_tags
from flagsvc.http.delta import STREAMING
from flagsvc.http.http_errors import not_ready
from flagsvc.http.keys import SCHEME, Keys
from flagsvc.http.messages import HttpError, Response
from flagsvc.http.reports import (
    BULK,
    CLIENT_METRICS,
    CLIENT_REGISTRATION,
    DEFAULT_INSTANCE,
    Entry,
    count_malformed,
    cut,
    read_usage,
)
from flagsvc.http.token_questions import QUESTION, known_token
from flagsvc.http.trust import TrustedProxies
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.client import Features, read, read_metrics
from flagsvc.proxy.api.client_documents import DocumentFilter, find_feature
from flagsvc.proxy.api.impact import add_reported
from flagsvc.proxy.api.query import named_in
from flagsvc.proxy.api.route import DialectParts
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.usage import UsageSource
from flagsvc.settings.tokens import EVERY_ENVIRONMENT, EVERY_PROJECT, SEVERAL_PROJECTS, NamedScope, read_scope

MAX_STRATEGIES = 500
UNUSABLE = "the request cannot be read"
TAGS = "the proxy does not know the tags of features: set the option `tags` (variable `FLAGSVC_TAGS`) to these"
ABOUT = (
    "sdkVersion",
    "started",
    "interval",
    "environment",
    "platformName",
    "platformVersion",
    "yggdrasilVersion",
    "specVersion",
)
"""What is passed on of a registration besides names and strategies, if it is a text or a number."""


class FilterReader:
    """Reads what of the document a server-side SDK asks for."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.tags = frozenset(settings.tags)

    def __call__(self, call: Call) -> DocumentFilter:
        """Return the filter of a call. Raises HttpError (400)."""
        query = read_query(call.request.query)
        given = {name: values for name, values in query.items() if name in FILTERS}
        problems = [("/query", problem) for problem in find_problems(given)]
        inline = False
        try:
            inline = not knows_segments(call.client_spec)
        except ValueError as error:
            problems.append(("/headers/unleash-client-spec", str(error)))
        asked = set(split_tags(given.get("tag", ())))
        if not problems and asked and not (self.tags and self.tags <= asked):
            problems.append(("/query/tag", TAGS))
        if problems:
            raise HttpError(400, UNUSABLE, problems)
        return DocumentFilter(tuple(sorted(set(given.get("project", ())))), next(iter(given.get("namePrefix", ())), ""), inline)


class ClientFeatures(Features):
    """GET /api/client/features: the configuration document, filtered, with segments as the SDK understands them."""

    def __init__(self, parts: DialectParts) -> None:
        super().__init__(parts.holder, parts.answers)
        self.reader = FilterReader(parts.settings)
        self.offers_streaming = parts.settings.offer_streaming and parts.settings.max_streams > 0

    def read_filter(self, call: Call) -> DocumentFilter:
        return self.reader(call)

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the document, perhaps with the offer of a stream. Raises HttpError (400, 503)."""
        answer = super().answer(call, body)
        if self.offers_streaming and isinstance(answer, Response) and answer.status == 200 and not call.request.query:
            answer.own.append(STREAMING)
        return answer


class ClientFeature(Handler):
    """GET /api/client/features/{name}: one feature, with the constraints of its segments."""

    def __init__(self, parts: DialectParts, prefix: str) -> None:
        self.holder = parts.holder
        self.answers = parts.answers
        self.prefix = parts.settings.base_path + prefix

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the feature. Raises HttpError (404, 503)."""
        served = self.holder.document
        if served is None:
            raise not_ready()
        name = named_in(call.request.path, self.prefix)
        found = find_feature(served.body, name)
        if found is None:
            raise HttpError(404, f"Could not find feature flag {name[:200]}", [])
        return self.answers.respond(self.answers.configuration, call, found)


class Report(Handler):
    """A post of an SDK that is counted or noted, and answered with an empty 202."""

    def __init__(self, parts: DialectParts) -> None:
        self.usage = parts.usage
        self.answers = parts.answers

    def answer(self, call: Call, body: bytes) -> Answer:
        """Take a report. Raises HttpError (400, 413) before anything is counted."""
        self.take(read_json(body, call.media, call.limit, call.depth), call)
        self.usage.finish_report()
        return self.answers.respond_accepted()

    def take(self, value: object, call: Call) -> None:
        """Take the body of a report. Raises HttpError (400)."""


class ClientMetrics(Report):
    """POST /api/client/metrics: the counts and the impact metrics of one application."""

    def take(self, value: object, call: Call) -> None:
        """Add the counts and the impact metrics. Raises HttpError (400), but not for malformed impact metrics."""
        counts, malformed = read_metrics(value, CLIENT_METRICS)
        source = source_of(cast("dict[str, object]", value))
        for name, yes, no, variants in counts:
            self.usage.add(name, yes, no, variants, source)
        self.usage.leave_out(malformed)
        add_reported(self.usage, value, source)


class ClientBulkMetrics(Report):
    """POST /api/client/metrics/bulk: what another proxy counted and noted for its callers."""

    def take(self, value: object, call: Call) -> None:
        """Add the counts, and note the registrations. The impact metrics name no application. Raises HttpError (400).

        Counts of another environment than the key's are left out.
        """
        body = cast("dict[str, list[Entry]]", read(BULK, value))
        applications = [(source_of(each), each) for each in body["applications"] if each is not None]
        metrics = [(source_of(counts), counts) for counts in body["metrics"] if counts is not None]
        self.usage.leave_out(count_malformed(body["metrics"], body["applications"]))
        instances = {source.app_name: source for source, _ in reversed(applications)}
        for source, application in applications:
            if is_whole(application):
                self.usage.register(source, registration_of(source, application))
        own = environment_of_key(call.key or b"")
        for source, counts in metrics:
            name, yes, no, variants = read_usage(counts["featureName"], counts)
            if own and (counts.get("environment") or own) != own:
                self.usage.leave_out_unknown()
                continue
            self.usage.add(name, yes, no, variants, instances.get(source.app_name, source))
        add_reported(self.usage, value, None)


class ClientRegister(Report):
    """POST /api/client/register: a server-side application starts."""

    def take(self, value: object, call: Call) -> None:
        """Note the registration. Raises HttpError (400)."""
        body = cast("dict[str, Any]", read(CLIENT_REGISTRATION, value))
        source = source_of(body)
        self.usage.register(source, registration_of(source, body))


class Validate(Handler):
    """POST /edge/validate: which of some texts are keys of this proxy, with what they open."""

    def __init__(self, parts: DialectParts) -> None:
        self.keys = parts.keys
        self.answers = parts.answers
        self.environment = parts.settings.upstream_environment
        self.trust = TrustedProxies(parts.settings.trust_proxy)
        self.find_tokens = parts.find_tokens

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the keys, or an awaitable of them if those of the whole process count. Raises HttpError (400, 413)."""
        value = cast("dict[str, list[str]]", read(QUESTION, read_json(body, call.media, call.limit, call.depth)))
        tokens = list(dict.fromkeys(value["tokens"]))
        if self.find_tokens is not None:
            network = self.trust.caller_network(call.request.peer, call.forwarded)
            return self.answer_later(call, self.find_tokens(tokens, network))
        found = (describe_listed(self.keys, token, self.environment) for token in tokens)
        return self.respond(call, [told for told in found if told is not None])

    async def answer_later(self, call: Call, found: Awaitable[list[dict[str, Any]]]) -> Response:
        """Return the answer with the keys of the whole process. Raises HttpError (503) if they cannot be found out now."""
        return self.respond(call, await found)

    def respond(self, call: Call, found: list[dict[str, Any]]) -> Response:
        return self.answers.make_response(200, self.answers.error, call, msgspec.json.encode({"tokens": found}), [])


def describe_listed(keys: Keys, token: str, default_environment: str) -> dict[str, Any] | None:
    """Return a listed key in the words of the real server; None if it is none. Both sets are always searched."""
    key = token.encode("utf-8", "surrogatepass")
    is_client, is_server = keys.client.lists(key), keys.server.lists(key)
    kind = "client" if is_server else "frontend" if is_client else ""
    return describe_key(token, kind, default_environment) if kind else None


def describe_key(token: str, kind: str, default_environment: str) -> dict[str, Any]:
    """Return a listed key with its type, projects and environment: what it says itself, else what the upstream's token says."""
    named = read_scope(token) or NamedScope(EVERY_PROJECT, default_environment)
    project = EVERY_PROJECT if named.project == SEVERAL_PROJECTS else named.project
    return known_token(token, kind, [project], named.environment)


def environment_of_key(key: bytes) -> str:
    """Return the environment that a key names in its text, as it came in the header; empty if it names none, or all."""
    text = key[len(SCHEME) :] if key[: len(SCHEME)].lower() == SCHEME else key
    named = read_scope(text.strip().decode("utf-8", "replace"))
    return "" if named is None or named.environment == EVERY_ENVIRONMENT else named.environment


def source_of(body: Mapping[str, object]) -> UsageSource:
    """Return the application of a report. Its names are cut to the length that flag servers store."""
    instance = body.get("instanceId")
    found = instance if isinstance(instance, str) and instance else DEFAULT_INSTANCE
    return UsageSource(cut(str(body["appName"])), cut(found))


def is_whole(application: Mapping[str, Any]) -> bool:
    """Return whether the upstream takes the registration of an application: with the start and the interval of a backend."""
    return application.get("started") is not None and application.get("interval") is not None


def registration_of(source: UsageSource, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the registration to send upstream for an application."""
    about = {name: short(body[name]) for name in ABOUT if isinstance(body.get(name), str | int | float) and body[name] != ""}
    strategies = [cut(name) for name in (body.get("strategies") or [])[:MAX_STRATEGIES] if name]
    return {"appName": source.app_name, "instanceId": source.instance_id, "strategies": strategies, **about}


def short(value: str | float) -> str | float:
    """Return a value; a text is cut to the length of a name."""
    return cut(value) if isinstance(value, str) else value
