"""What server-side SDKs and other proxies send to `/api/client` (dialects: Server-side API of the proxy).

What an application reports goes upstream under its own name and instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.client_query import FILTERS, find_problems, knows_segments, read_query, split_tags
from flagsvc.http.http_errors import not_ready
from flagsvc.http.messages import HttpError, invalid
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.client import Features
from flagsvc.proxy.api.client_documents import DocumentFilter, find_feature
from flagsvc.proxy.api.dialects.dialect import DialectParts
from flagsvc.proxy.api.paths import named_in
from flagsvc.proxy.api.reports import BULK, CLIENT_METRICS, CLIENT_REGISTRATION, TOKENS, read, read_metrics, read_usage
from flagsvc.proxy.usage import UsageSource

DEFAULT_INSTANCE = "default"
MAX_NAME_LENGTH = 255
MAX_STRATEGIES = 500
MAX_TOKENS = 100
"""The most keys in one question."""
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


class ClientFeatures(Features):
    """GET /api/client/features: the configuration document, filtered, with segments as the SDK understands them."""

    def __init__(self, parts: DialectParts) -> None:
        super().__init__(parts.holder, parts.answers)
        self.tags = frozenset(parts.settings.tags)

    def read_filter(self, call: Call) -> DocumentFilter:
        """Return what of the document is asked for. Raises HttpError (400)."""
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
        return DocumentFilter(
            tuple(sorted(set(given.get("project", ())))), next(iter(given.get("namePrefix", ())), ""), inline
        )


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
        self.take(read_json(body, call.media, call.limit, call.depth))
        self.usage.finish_report()
        return self.answers.respond_accepted()

    def take(self, value: object) -> None:
        """Take the body of a report. Raises HttpError (400)."""


class ClientMetrics(Report):
    """POST /api/client/metrics: the counts of one application."""

    def take(self, value: object) -> None:
        """Add the counts. Raises HttpError (400)."""
        counts = read_metrics(value, CLIENT_METRICS)
        source = source_of(cast("dict[str, object]", value))
        for name, yes, no, variants in counts:
            self.usage.add(name, yes, no, variants, source)


class ClientBulkMetrics(Report):
    """POST /api/client/metrics/bulk: what another proxy counted and noted for its callers."""

    def take(self, value: object) -> None:
        """Add the counts, and note the registrations. Raises HttpError (400)."""
        body = cast("dict[str, list[dict[str, Any]]]", read(BULK, value))
        applications = [(source_of(application), application) for application in body["applications"]]
        metrics = [(source_of(counts), counts) for counts in body["metrics"]]
        instances = {source.app_name: source for source, _ in reversed(applications)}
        for source, application in applications:
            self.usage.register(source, registration_of(source, application))
        for source, counts in metrics:
            name, yes, no, variants = read_usage(counts["featureName"], counts)
            self.usage.add(name, yes, no, variants, instances.get(source.app_name, source))


class ClientRegister(Report):
    """POST /api/client/register: a server-side application starts."""

    def take(self, value: object) -> None:
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

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the keys. Raises HttpError (400, 413)."""
        value = cast("dict[str, list[str]]", read(TOKENS, read_json(body, call.media, call.limit, call.depth)))
        tokens = list(dict.fromkeys(value["tokens"]))
        if len(tokens) > MAX_TOKENS:
            raise invalid("/body", "tokens", f"must NOT have more than {MAX_TOKENS} items")
        found = [self.describe(token, kind) for token in tokens if (kind := self.kind_of(token))]
        return self.answers.make_response(200, self.answers.error, call, msgspec.json.encode({"tokens": found}), [])

    def kind_of(self, token: str) -> str:
        """Return the type of a key in the words of the real server; empty if it is none. Both sets are always searched."""
        key = token.encode("utf-8", "surrogatepass")
        is_client, is_server = self.keys.client.contains(key), self.keys.server.contains(key)
        return "client" if is_server else "frontend" if is_client else ""

    def describe(self, token: str, kind: str) -> dict[str, object]:
        """Return a key with its type, projects and environment: what it says itself, else what the upstream's token says."""
        scope, dot, _ = token.partition(".")
        project, colon, environment = scope.partition(":")
        own = bool(dot and colon)
        return {
            "token": token,
            "type": kind,
            "projects": [project if own and project != "[]" else "*"],
            "environment": environment if own else self.environment,
        }


def source_of(body: Mapping[str, object]) -> UsageSource:
    """Return the application of a report. Its names are cut to the length that flag servers store."""
    instance = body.get("instanceId")
    found = instance if isinstance(instance, str) and instance else DEFAULT_INSTANCE
    return UsageSource(str(body["appName"])[:MAX_NAME_LENGTH], found[:MAX_NAME_LENGTH])


def registration_of(source: UsageSource, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the registration to send upstream for an application."""
    about = {name: short(body[name]) for name in ABOUT if isinstance(body.get(name), str | int | float)}
    strategies = [short(name) for name in body.get("strategies", [])[:MAX_STRATEGIES]]
    return {"appName": source.app_name, "instanceId": source.instance_id, "strategies": strategies, **about}


def short(value: str | float) -> str | float:
    """Return a value; a text is cut to the length of a name."""
    return value[:MAX_NAME_LENGTH] if isinstance(value, str) else value
